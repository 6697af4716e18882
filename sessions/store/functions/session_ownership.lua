-- Who owns a session, under which fence, and who may come back to it.

-- ── tokens

local function is_valid(head, token)
  if token == head.known then
    return token ~= ''
  end
  for _, offered in ipairs(cmsgpack.unpack(head.offered)) do
    if offered == token then
      return true
    end
  end
  return false
end

-- A valid token that is used: those before are void.
local function use(head, token, changes)
  if token ~= head.known then
    changes.known = token
    changes.offered = cmsgpack.pack({})
  end
end

-- The client has this valid token: those before it are void, and not what somebody was offered since.
local function shown(head, token)
  local offered, known = cmsgpack.unpack(head.offered), head.known
  while known ~= token do
    known = table.remove(offered, 1)
  end
  return {known = known, offered = cmsgpack.pack(offered)}
end

local function offer(packed, token)
  local offered = cmsgpack.unpack(packed)
  offered[#offered + 1] = token
  if #offered > OFFERED_TOKENS then
    table.remove(offered, 1)
  end
  return cmsgpack.pack(offered)
end

-- ── ownership

local function begin(keys, a, now, gone_to)
  local incarnation = math.max(a.incarnation, a.above_incarnation)
  local number = math.max(a.above_number + 1, now)
  redis.call('DEL', unpack(keys))
  local head = {due = 0, over = now + a.life, grace = a.grace, leased_until = now + a.lease, detached = 0}
  local changes = {
    record = a.record, node = a.node, state = a.state, first_token = a.token, known = a.token, last_offer = '', usage = '',
    incarnation = incarnation, number = number, opening_incarnation = incarnation, opening_number = number,
    over = head.over, grace = a.grace, lease = a.lease, leased_until = head.leased_until, detached = 0,
    offered = cmsgpack.pack(a.offered), last_write = 0, last_moved = 0, seq = 0, last_event = 0, gone_to = gone_to,
    journal_bytes = 0, input_bytes = 0, result_bytes = 0,
  }
  if a.state == 'detached' then
    changes.detached = now
  end
  save(keys, head, changes, now, true)
  return {'ok', incarnation, number}
end

local function opening(arguments)
  return {
    node = arguments[1], lease = tonumber(arguments[2]), token = arguments[3], incarnation = tonumber(arguments[4]),
    above_incarnation = tonumber(arguments[5]), above_number = tonumber(arguments[6]), record = arguments[7],
    life = tonumber(arguments[8]), grace = tonumber(arguments[9]), state = arguments[10],
    offered = {unpack(arguments, 11)},
  }
end

-- It was opened so, and nothing has happened since: its lease begins anew. Else nil.
local function opened_so(keys, head, a, now)
  local unchanged = head.incarnation == head.opening_incarnation and head.number == head.opening_number
  local same_tenant = cmsgpack.unpack(head.record).tenant == cmsgpack.unpack(a.record).tenant
  if same_tenant and head.node == a.node and head.first_token == a.token and unchanged then
    save(keys, head, {leased_until = now + head.lease}, now)
    return {'ok', head.incarnation, head.number}
  end
end

register('session_open', {}, function(keys, arguments)
  local a, now = opening(arguments), now_us()
  local head = living(keys, now)
  if head then
    return opened_so(keys, head, a, now) or {'in use'}
  end
  return begin(keys, a, now, 0)
end)

register('session_restore', {}, function(keys, arguments)
  local a, now = opening(arguments), now_us()
  local head = living(keys, now)
  if head and is_above(head.incarnation, head.number, a.above_incarnation, a.above_number) then
    return opened_so(keys, head, a, now) or {'fenced'}
  end
  return begin(keys, a, now, NEVER_WHOLE)
end)

register('session_claim', {}, function(keys, arguments)
  local node, lease, token, offered = arguments[1], tonumber(arguments[2]), arguments[3], arguments[4]
  local now = now_us()
  local head = living(keys, now)
  if not head or OVER[head.state] or not is_valid(head, token) then
    return {'unknown'}
  end
  if head.node ~= '' and head.node ~= node and head.leased_until > now then
    return {'owned', head.node, head.leased_until - now}
  end
  local changes = {lease = lease, leased_until = now + lease}
  with_state(head, 'active', now, changes)
  if head.node ~= node or head.last_offer ~= offered then
    local incarnation, number = head.incarnation, head.number
    local above_incarnation, above_number = tonumber(arguments[6]), tonumber(arguments[7])
    if is_above(above_incarnation, above_number, incarnation, number) then
      incarnation, number = above_incarnation, above_number
    end
    use(head, token, changes)
    changes.offered = offer(changes.offered or head.offered, offered)
    changes.last_offer = offered
    changes.last_moved = head.node ~= node and 1 or 0
    changes.last_write = 0
    changes.node = node
    changes.incarnation = math.max(incarnation, tonumber(arguments[5]))
    changes.number = math.max(number + 1, now)
  end
  save(keys, head, changes, now)
  return {'ok', head.record, head.state, head.over - now, head.incarnation, head.number, head.seq, head.last_moved}
end)

register('session_delivered', {'allow-oom'}, function(keys, arguments)
  local now = now_us()
  local head, refused = owned(keys, arguments, now)
  if not head then
    return refused
  end
  local token = arguments[3]
  if token ~= head.known and is_valid(head, token) then
    save(keys, head, shown(head, token), now)
  end
  return {'ok'}
end)

register('session_renew', {'allow-oom'}, function(keys, arguments)
  local now = now_us()
  local head, refused = owned(keys, arguments, now)
  if not head then
    return refused
  end
  local lease = tonumber(arguments[3])
  save(keys, head, {lease = lease, leased_until = now + lease}, now)
  return {'ok'}
end)

register('session_disown', {'allow-oom'}, function(keys, arguments)
  local now = now_us()
  local head = living(keys, now)
  if head and head.node ~= '' and head.node == arguments[1] then
    local changes = {node = '', leased_until = now}
    if not OVER[head.state] then
      with_state(head, 'detached', now, changes)
    end
    save(keys, head, changes, now)
  end
  return {'ok'}
end)

-- ── looking, ending

local function seen(head, now)
  return {'ok', head.record, head.state, head.over - now, head.node, head.incarnation, head.number, head.usage}
end

register('session_owner', {'no-writes'}, function(keys)
  local now = now_us()
  local head = living(keys, now)
  if head and head.node ~= '' and head.leased_until > now then
    return {'ok', head.node, head.incarnation, head.number, head.leased_until - now}
  end
  return {'unknown'}
end)

register('session_look', {'no-writes'}, function(keys)
  local now = now_us()
  local head = living(keys, now)
  return head and seen(head, now) or {'unknown'}
end)

-- Without arguments: whatever its fence.
register('session_end', {'allow-oom'}, function(keys, arguments)
  local now = now_us()
  local head = living(keys, now)
  if head and #arguments > 0 then
    local _, refused = owned(keys, arguments, now)
    if refused then
      return refused
    end
  end
  redis.call('DEL', unpack(keys))
  return head and seen(head, now) or {'unknown'}
end)
