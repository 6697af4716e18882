-- One session, for the files that follow. Its keys share a slot; they come in the order of `session_keys`. The head is a hash:
-- who owns it, its tokens, its counters. Replies begin with how it went: 'ok', 'unknown', 'fenced' …
local HEAD, JOURNAL, INPUTS, SNAPSHOT, RESULTS, RESULT_ORDER = 1, 2, 3, 4, 5, 6
local KEYS_OF_A_SESSION = 6
local EXPIRY_SLACK_US = 2000000 -- so much later than its end it goes at the latest; else each write would set six expiries
local NEVER_WHOLE = 9007199254740992 -- as `gone_to`: what went out before is not known
local NUMBERS = {
  'incarnation', 'number', 'opening_incarnation', 'opening_number', 'over', 'grace', 'lease', 'leased_until', 'detached', 'due',
  'last_write', 'seq', 'last_event', 'gone_to', 'journal_bytes', 'input_bytes', 'result_bytes', 'last_moved',
}
local OVER = {closing = true, closed = true, failed = true, expired = true}

local function ends(head)
  local since = head.detached > 0 and head.detached or head.leased_until
  return math.min(head.over, since + head.grace)
end

local function living(keys, now)
  local flat = redis.call('HGETALL', keys[HEAD])
  if #flat == 0 then
    return nil
  end
  local head = {}
  for i = 1, #flat, 2 do
    head[flat[i]] = flat[i + 1]
  end
  for _, name in ipairs(NUMBERS) do
    head[name] = tonumber(head[name])
  end
  return ends(head) > now and head or nil
end

-- `created`: a key is new, and has no expiry yet.
local function save(keys, head, changes, now, created)
  local flat = {}
  for name, value in pairs(changes) do
    head[name] = value
  end
  local over = ends(head)
  if over > head.due or head.due - over > EXPIRY_SLACK_US then
    changes.due = math.min(over + EXPIRY_SLACK_US, head.over)
    head.due = changes.due
    created = true
  end
  for name, value in pairs(changes) do
    flat[#flat + 1] = name
    flat[#flat + 1] = value
  end
  redis.call('HSET', keys[HEAD], unpack(flat))
  if created then
    for i = 1, KEYS_OF_A_SESSION do
      redis.call('PEXPIRE', keys[i], string.format('%.0f', math.ceil((head.due - now) / 1000)))
    end
  end
end

local function is_above(incarnation, number, other_incarnation, other_number)
  return incarnation > other_incarnation or (incarnation == other_incarnation and number > other_number)
end

-- The living session that is owned under the fence of the first two arguments; or nil, and the reply.
local function owned(keys, arguments, now)
  local head = living(keys, now)
  if not head then
    return nil, {'unknown'}
  end
  if head.node == '' or head.incarnation ~= tonumber(arguments[1]) or head.number ~= tonumber(arguments[2]) then
    return nil, {'fenced'}
  end
  return head
end

local function with_state(head, state, now, changes)
  changes.state = state
  if state ~= 'detached' then
    changes.detached = 0
  elseif head.detached == 0 then
    changes.detached = now
  end
end
