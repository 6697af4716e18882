-- Resources: what there is, who says so, and what is taken. As memory_pool.py.
-- `step` is what one call knows: its time, what it has read, whether something became free.
local step

local function call(...)
  return redis.call(...) -- there is none yet while the library is loaded
end

local function read(kept, key, name)
  local value = kept[name]
  if not value then
    value = tonumber(call('HGET', key, name)) or 0
    kept[name] = value
  end
  return value
end

local function scope(name)
  return string.match(name, '^[^:]*')
end

local function limit(name, quota, priority)
  if scope(name) == 'tenant' then
    return quota[name] or NO_LIMIT
  end
  local capacity = read(step.capacity, KEY_CAPACITY, name)
  if priority == RESUME then
    return capacity
  end
  return capacity - read(step.reserve, KEY_RESERVE, name)
end

local function free(name, quota, priority)
  return limit(name, quota, priority) - read(step.used, KEY_USED, name)
end

local function never(name, parts, priority)
  return scope(name) ~= 'tenant' and read(step.capacity, KEY_CAPACITY, name) > 0 and parts > limit(name, {}, priority)
end

local function take(cost, sign)
  for _, pair in ipairs(cost) do
    local name = pair[1]
    step.used[name] = call('HINCRBY', KEY_USED, name, sign * pair[2])
    if step.used[name] == 0 then
      call('HDEL', KEY_USED, name)
    end
  end
end

local function stop_bringing(node, names)
  for _, name in ipairs(names) do
    call('SREM', KEY_TELLERS .. name, node)
    if call('EXISTS', KEY_TELLERS .. name) == 0 then
      call('HDEL', KEY_CAPACITY, name)
      call('HDEL', KEY_RESERVE, name)
      step.capacity[name] = nil
      step.reserve[name] = nil
    end
  end
end

local function brought_by(node)
  local names = call('HGET', KEY_BROUGHT, node)
  return names and cmsgpack.unpack(names) or {}
end

local function bring(told)
  local now, reserved, names, gone = {}, {}, {}, {}
  for _, pair in ipairs(told.reserve) do
    reserved[pair[1]] = pair[2]
  end
  for _, pair in ipairs(told.capacity) do
    local name = pair[1]
    now[name] = true
    names[#names + 1] = name
    call('SADD', KEY_TELLERS .. name, told.node)
    call('HSET', KEY_CAPACITY, name, pair[2])
    call('HSET', KEY_RESERVE, name, reserved[name] or 0)
    step.capacity[name] = nil
    step.reserve[name] = nil
  end
  for _, name in ipairs(brought_by(told.node)) do
    if not now[name] then
      gone[#gone + 1] = name
    end
  end
  stop_bringing(told.node, gone)
  call('HSET', KEY_BROUGHT, told.node, cmsgpack.pack(names))
end

local function bring_no_longer(node)
  stop_bringing(node, brought_by(node))
  call('HDEL', KEY_BROUGHT, node)
end
