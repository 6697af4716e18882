-- What there is, for people and the front; and news for nodes.
local function incarnation(_, arguments)
  begin(arguments[1])
  return step.incarnation
end

-- What is left of it, in µs.
local function settling(_, arguments)
  begin(arguments[1])
  return math.max(step.settled_us - step.now, 0)
end

-- Of each node: what it has told, what is left of its lease, its tickets.
local function nodes(_, arguments)
  begin(arguments[1])
  local seen = {}
  for _, node in ipairs(call('HKEYS', KEY_NODES)) do
    local until_us = tonumber(call('ZSCORE', KEY_ENDS, 'n:' .. node)) or step.now
    seen[#seen + 1] = { call('HGET', KEY_NODES, node), until_us - step.now, tickets_counted(node) }
  end
  return seen
end

local function census(_, arguments)
  begin(arguments[1])
  local counts = { call('HLEN', KEY_TICKETS), call('ZCARD', KEY_LENT), count_waiting() }
  local wait_error_us = call('HGET', KEY_STATE, 'wait_error_us')
  return { counts, call('HGETALL', KEY_USED), call('HGETALL', KEY_CAPACITY), call('HGETALL', KEY_TENANTS), wait_error_us }
end

-- The cursor of whoever hears from now on.
local function last_news(_, arguments)
  local last = call('XREVRANGE', KEY_NEWS .. arguments[1], '+', '-', 'COUNT', 1)[1]
  return last and last[1] or '0-0'
end

local function order(_, arguments)
  append_news(arguments[1], arguments[2])
end

-- Also when the memory is used up: whoever looks what it is used for, and ends some of it, needs all of these.
register('incarnation', { 'allow-oom' }, incarnation)
register('settling', { 'allow-oom' }, settling)
register('nodes', { 'allow-oom' }, nodes)
register('census', { 'allow-oom' }, census)
register('last_news', { 'no-writes' }, last_news)
register('order', { 'allow-oom' }, order)
