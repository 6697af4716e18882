-- Resources: what there is, who says so, and what is taken. As memory_pool.py.
-- `step` is what one call knows: its time, what it has read, whether something became free.
local step

local function call(...)
  return redis.call(...) -- there is none yet while the library is loaded
end

local function scope(name)
  return string.match(name, '^[^:]*')
end

local function read(key, what, names)
  if #names > 0 then
    for i, value in ipairs(call('HMGET', key, unpack(names))) do
      step.counts[names[i]][what] = tonumber(value) or 0
    end
  end
end

-- What there is, what of it is reserved, and what is taken, of all that a cost names.
local function know(cost)
  local names, shared = {}, {}
  for _, pair in ipairs(cost) do
    local name = pair[1]
    if not step.counts[name] then
      step.counts[name] = {}
      names[#names + 1] = name
      if scope(name) ~= 'tenant' then
        shared[#shared + 1] = name
      end
    end
  end
  read(KEY_USED, 'used', names)
  read(KEY_CAPACITY, 'capacity', shared)
  read(KEY_RESERVE, 'reserve', shared)
end

-- Of what is known.
local function limit(name, quota, priority)
  if scope(name) == 'tenant' then
    return quota[name] or NO_LIMIT
  end
  local counts = step.counts[name]
  return counts.capacity - (priority == RESUME and 0 or counts.reserve)
end

local function free(name, quota, priority)
  return limit(name, quota, priority) - step.counts[name].used
end

local function never(name, parts, priority)
  return scope(name) ~= 'tenant' and step.counts[name].capacity > 0 and parts > limit(name, {}, priority)
end

local function take(cost, sign)
  know(cost)
  local some, none = {}, {}
  for _, pair in ipairs(cost) do
    local name, counts = pair[1], step.counts[pair[1]]
    counts.used = counts.used + sign * pair[2]
    if counts.used == 0 then
      none[#none + 1] = name
    else
      some[#some + 1] = name
      some[#some + 1] = string.format('%.0f', counts.used)
    end
  end
  if #some > 0 then
    call('HSET', KEY_USED, unpack(some))
  end
  if #none > 0 then
    call('HDEL', KEY_USED, unpack(none))
  end
end

local function stop_bringing(node, names)
  for _, name in ipairs(names) do
    call('SREM', KEY_TELLERS .. name, node)
    if call('EXISTS', KEY_TELLERS .. name) == 0 then
      call('HDEL', KEY_CAPACITY, name)
      call('HDEL', KEY_RESERVE, name)
      step.counts[name] = nil
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
    step.counts[name] = nil
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
