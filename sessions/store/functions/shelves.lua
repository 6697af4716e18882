-- Named records of an installation; each shelf is a hash.

register('shelf_put', {}, function(keys, arguments)
  local name, value, only_new = arguments[1], arguments[2], arguments[3] == '1'
  redis.call(only_new and 'HSETNX' or 'HSET', keys[1], name, value)
  return redis.call('HGET', keys[1], name)
end)

register('shelf_replace', {}, function(keys, arguments)
  local name, value = arguments[1], arguments[2]
  if redis.call('HEXISTS', keys[1], name) == 0 then return 0 end
  redis.call('HSET', keys[1], name, value)
  return 1
end)

register('shelf_get', {'no-writes'}, function(keys, arguments)
  return redis.call('HGET', keys[1], arguments[1])
end)

register('shelf_list', {'no-writes'}, function(keys)
  return redis.call('HGETALL', keys[1])
end)

register('shelf_remove', {'allow-oom'}, function(keys, arguments)
  return redis.call('HDEL', keys[1], arguments[1])
end)
