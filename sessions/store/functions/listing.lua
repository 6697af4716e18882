-- Which sessions there are, by id and by tenant, in a slot of its own: sessions live in theirs. An entry is made before its
-- session, and taken away after it; what is left over goes when it is met, or at the end of the session's longest life.
local IDS, OF_TENANTS, MADE, ENDS = 1, 2, 3, 4
local SWEPT = 64
local YOUNG_US = 60000000 -- its session may be on its way

local function drop(keys, session_id)
  local made = redis.call('HGET', keys[MADE], session_id)
  if made then
    redis.call('ZREM', keys[OF_TENANTS], string.sub(made, 9) .. '\0' .. session_id)
    redis.call('HDEL', keys[MADE], session_id)
    redis.call('ZREM', keys[IDS], session_id)
    redis.call('ZREM', keys[ENDS], session_id)
  end
end

-- Returns 0 when it stands there for another tenant: it is left.
register('listing_add', {}, function(keys, arguments)
  local session_id, tenant, now = arguments[1], arguments[2], now_us()
  for _, ended in ipairs(redis.call('ZRANGEBYSCORE', keys[ENDS], '-inf', now, 'LIMIT', 0, SWEPT)) do
    drop(keys, ended)
  end
  local made = redis.call('HGET', keys[MADE], session_id)
  if made and string.sub(made, 9) ~= tenant then
    return 0
  end
  redis.call('HSET', keys[MADE], session_id, struct.pack('>I8', now) .. tenant)
  redis.call('ZADD', keys[IDS], 0, session_id)
  redis.call('ZADD', keys[OF_TENANTS], 0, tenant .. '\0' .. session_id)
  redis.call('ZADD', keys[ENDS], 'GT', now + tonumber(arguments[3]), session_id)
  return 1
end)

register('listing_drop', {'allow-oom'}, function(keys, arguments)
  drop(keys, arguments[1])
  return 'ok'
end)

-- Its session was not there.
register('listing_met_gone', {'allow-oom'}, function(keys, arguments)
  local made = redis.call('HGET', keys[MADE], arguments[1])
  if made and struct.unpack('>I8', made) < now_us() - YOUNG_US then
    drop(keys, arguments[1])
  end
  return 'ok'
end)

register('listing_page', {'no-writes'}, function(keys, arguments)
  local after, limit = arguments[1], arguments[2]
  if #arguments == 2 then
    return redis.call('ZRANGE', keys[IDS], '(' .. after, '+', 'BYLEX', 'LIMIT', 0, limit)
  end
  local tenant = arguments[3]
  local ids = redis.call('ZRANGE', keys[OF_TENANTS], '(' .. tenant .. '\0' .. after, '(' .. tenant .. '\1', 'BYLEX', 'LIMIT', 0, limit)
  for i, member in ipairs(ids) do
    ids[i] = string.sub(member, #tenant + 2)
  end
  return ids
end)
