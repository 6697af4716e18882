-- What a session has sent, taken in and answered.

-- Reads the arguments of a write one after the other.
local function reader(arguments, at)
  return function()
    at = at + 1
    return arguments[at - 1]
  end
end

local function write_inputs(keys, head, changes, next_argument)
  local snapshots, created = tonumber(next_argument()), false
  local kept = snapshots > 0 and 0 or head.input_bytes
  local snapshot = snapshots > 0 and next_argument()
  local inputs = {}
  for i = 1, tonumber(next_argument()) do
    inputs[i] = next_argument()
    kept = kept + #inputs[i]
  end
  if #inputs > 0 and kept > INPUT_BYTES then
    return nil
  end
  if snapshot then
    redis.call('SET', keys[SNAPSHOT], snapshot)
    redis.call('DEL', keys[INPUTS])
    created = true
  end
  for _, input in ipairs(inputs) do
    created = redis.call('RPUSH', keys[INPUTS], input) == 1 or created
  end
  changes.input_bytes = kept
  return true, created
end

local function write_events(keys, head, changes, now, next_argument)
  local created, last, gone_to, bytes = false, head.last_event, head.gone_to, head.journal_bytes
  for _ = 1, tonumber(next_argument()) do
    local seq, event = tonumber(next_argument()), next_argument()
    if seq > last then
      gone_to = gone_to == NEVER_WHOLE and seq - 1 or gone_to
      created = redis.call('RPUSH', keys[JOURNAL], struct.pack('>I8I8', seq, now) .. event) == 1 or created
      bytes = bytes + #event
      last = seq
    end
  end
  changes.last_event, changes.gone_to, changes.journal_bytes = last, gone_to, bytes
  return created
end

local ENTRY_HEADER = 16

local function trim_journal(keys, changes, acknowledged, now)
  local left = redis.call('LLEN', keys[JOURNAL])
  while left > 0 do
    local oldest = redis.call('LINDEX', keys[JOURNAL], 0)
    local seq, written = struct.unpack('>I8I8', oldest)
    local too_much = left > JOURNAL_EVENTS or changes.journal_bytes > JOURNAL_BYTES
    if not too_much and seq > acknowledged and written >= now - JOURNAL_WINDOW_US then
      return
    end
    redis.call('LPOP', keys[JOURNAL])
    left = left - 1
    changes.journal_bytes = changes.journal_bytes - (#oldest - ENTRY_HEADER)
    changes.gone_to = seq
  end
end

local RESULT_HEADER = 8

local function drop_result(keys, event_id, bytes)
  local result = redis.call('HGET', keys[RESULTS], event_id)
  redis.call('LPOP', keys[RESULT_ORDER])
  redis.call('HDEL', keys[RESULTS], event_id)
  return bytes - (#result - RESULT_HEADER)
end

local function is_current_result(result, now)
  return struct.unpack('>I8', result) > now - RESULT_WINDOW_US
end

local function write_results(keys, head, changes, now, next_argument)
  local count, created, bytes = tonumber(next_argument()), false, head.result_bytes
  local oldest = redis.call('LINDEX', keys[RESULT_ORDER], 0)
  while oldest and not is_current_result(redis.call('HGET', keys[RESULTS], oldest), now) do
    bytes = drop_result(keys, oldest, bytes)
    oldest = redis.call('LINDEX', keys[RESULT_ORDER], 0)
  end
  for _ = 1, count do
    local event_id, result = next_argument(), next_argument()
    if redis.call('HSETNX', keys[RESULTS], event_id, struct.pack('>I8', now) .. result) == 1 then
      created = redis.call('RPUSH', keys[RESULT_ORDER], event_id) == 1 or created
      bytes = bytes + #result
    end
  end
  while redis.call('LLEN', keys[RESULT_ORDER]) > MOST_RESULTS or bytes > RESULT_BYTES do
    bytes = drop_result(keys, redis.call('LINDEX', keys[RESULT_ORDER], 0), bytes)
  end
  changes.result_bytes = bytes
  return created
end

-- After the fence: number, promised, acknowledged, state, usage; then how many snapshots, inputs, events and results, each with
-- what it counts behind it.
register('session_write', {}, function(keys, arguments)
  local now = now_us()
  local head, refused = owned(keys, arguments, now)
  if not head then
    return refused
  end
  local next_argument = reader(arguments, 3)
  local number, promised, acknowledged = tonumber(next_argument()), tonumber(next_argument()), tonumber(next_argument())
  local state, usage = next_argument(), next_argument()
  local changes = {leased_until = now + head.lease}
  if number > 0 and number <= head.last_write then
    save(keys, head, changes, now)
    return {'ok'}
  end
  local fits, new_inputs = write_inputs(keys, head, changes, next_argument)
  if not fits then
    return {'inputs full'}
  end
  local new_journal = write_events(keys, head, changes, now, next_argument)
  trim_journal(keys, changes, acknowledged, now)
  local new_results = write_results(keys, head, changes, now, next_argument)
  changes.last_write = math.max(head.last_write, number)
  changes.seq = math.max(head.seq, changes.last_event, promised, acknowledged)
  if usage ~= '' then
    changes.usage = usage
  end
  if state ~= '' then
    with_state(head, state, now, changes)
  end
  save(keys, head, changes, now, new_inputs or new_journal or new_results)
  return {'ok'}
end)

register('session_missed', {'no-writes'}, function(keys, arguments)
  local head, refused = owned(keys, arguments, now_us())
  if not head then
    return refused
  end
  local after = tonumber(arguments[3])
  local reply = {'ok', head.gone_to <= after and after <= head.seq and 1 or 0}
  for _, entry in ipairs(redis.call('LRANGE', keys[JOURNAL], 0, -1)) do
    local seq = struct.unpack('>I8', entry)
    if seq > after then
      reply[#reply + 1] = seq
      reply[#reply + 1] = string.sub(entry, ENTRY_HEADER + 1)
    end
  end
  return reply
end)

register('session_kept', {'no-writes'}, function(keys, arguments)
  local head, refused = owned(keys, arguments, now_us())
  if not head then
    return refused
  end
  return {'ok', redis.call('GET', keys[SNAPSHOT]), redis.call('LRANGE', keys[INPUTS], 0, -1)}
end)

register('session_result', {'no-writes'}, function(keys, arguments)
  local now = now_us()
  local result = living(keys, now) and redis.call('HGET', keys[RESULTS], arguments[1])
  return result and is_current_result(result, now) and string.sub(result, RESULT_HEADER + 1)
end)
