-- Jobs: a hash for each, those of each tenant in the order of their ids, and when something becomes of each by itself: its lease
-- ends, or the time for which it is kept. As memory_jobs.py.

local function key_of(job_id)
  return KEY_JOB .. job_id
end

local function drop(job_id)
  local tenant = redis.call('HGET', key_of(job_id), 'tenant')
  if tenant then
    redis.call('ZREM', KEY_JOBS_OF_TENANTS, tenant .. '\0' .. job_id)
  end
  redis.call('ZREM', KEY_JOBS_DUE, job_id)
  redis.call('DEL', key_of(job_id))
end

local function finish(job_id, state, outcome, at)
  local until_us = at + tonumber(redis.call('HGET', key_of(job_id), 'keep'))
  redis.call('HSET', key_of(job_id), 'state', state, 'outcome', outcome, 'ended', at, 'until', until_us)
  redis.call('ZADD', KEY_JOBS_DUE, until_us, job_id)
end

-- What was to happen by now has happened.
local function settle(now)
  local due = redis.call('ZRANGE', KEY_JOBS_DUE, '-inf', now, 'BYSCORE', 'LIMIT', 0, DUE_AT_ONCE, 'WITHSCORES')
  for i = 1, #due, 2 do
    local job_id, at = due[i], tonumber(due[i + 1])
    local state = redis.call('HGET', key_of(job_id), 'state')
    if state == 'queued' or state == 'in_progress' then
      finish(job_id, 'failed', '', at)
    else
      drop(job_id)
    end
  end
end

local function is_running(job_id, node)
  local head = redis.call('HMGET', key_of(job_id), 'node', 'state')
  return head[1] == node and (head[2] == 'queued' or head[2] == 'in_progress')
end

local function seen(job_id)
  local fields = { 'tenant', 'node', 'state', 'progress', 'made', 'ended', 'until', 'wish', 'outcome' }
  return { job_id, unpack(redis.call('HMGET', key_of(job_id), unpack(fields))) }
end

register('job_post', {}, function(_, arguments)
  local job_id, tenant, node, wish = arguments[1], arguments[2], arguments[3], arguments[4]
  local lease, keep = tonumber(arguments[5]), arguments[6]
  local most, most_of_tenant = tonumber(arguments[7]), tonumber(arguments[8])
  local now = now_us()
  settle(now)
  local known = redis.call('HMGET', key_of(job_id), 'tenant', 'node')
  if known[1] then
    if known[1] == tenant and known[2] == node then return seen(job_id) end
    return { 'in use' }
  end
  if redis.call('ZLEXCOUNT', KEY_JOBS_OF_TENANTS, '[' .. tenant .. '\0', '(' .. tenant .. '\1') >= most_of_tenant then
    return { 'tenant full' }
  end
  if redis.call('ZCARD', KEY_JOBS_OF_TENANTS) >= most then
    return { 'full' }
  end
  redis.call('HSET', key_of(job_id), 'tenant', tenant, 'node', node, 'state', 'queued', 'progress', 0, 'made', now, 'ended', '',
    'until', '', 'wish', wish, 'outcome', '', 'keep', keep)
  redis.call('ZADD', KEY_JOBS_OF_TENANTS, 0, tenant .. '\0' .. job_id)
  redis.call('ZADD', KEY_JOBS_DUE, now + lease, job_id)
  return seen(job_id)
end)

-- Nothing is settled before: who reports late, and was not missed, goes on. Returns those that are gone.
register('job_report', {'allow-oom'}, function(_, arguments)
  local node, ends, gone = arguments[1], now_us() + tonumber(arguments[2]), {}
  for i = 3, #arguments, 2 do
    local job_id, percent = arguments[i], arguments[i + 1]
    if is_running(job_id, node) then
      if percent ~= '' then
        redis.call('HSET', key_of(job_id), 'state', 'in_progress', 'progress', percent)
      end
      redis.call('ZADD', KEY_JOBS_DUE, ends, job_id)
    else
      gone[#gone + 1] = job_id
    end
  end
  return gone
end)

register('job_end', {'allow-oom'}, function(_, arguments)
  local job_id, node, state, outcome = arguments[1], arguments[2], arguments[3], arguments[4]
  if is_running(job_id, node) then
    finish(job_id, state, outcome, now_us())
    return 1
  end
  local known = redis.call('HMGET', key_of(job_id), 'node', 'state', 'outcome')
  return (known[1] == node and known[2] == state and known[3] == outcome) and 1 or 0
end)

local function find(arguments)
  local tenant, job_id = arguments[1], arguments[2]
  settle(now_us())
  return redis.call('HGET', key_of(job_id), 'tenant') == tenant and seen(job_id) or {}
end

register('job_look', {'allow-oom'}, function(_, arguments)
  return find(arguments)
end)

register('job_remove', {'allow-oom'}, function(_, arguments)
  local found = find(arguments)
  if found[1] then drop(arguments[2]) end
  return found
end)

register('job_page', {'allow-oom'}, function(_, arguments)
  local tenant, after, limit, newest_first = arguments[1], arguments[2], arguments[3], arguments[4] == '1'
  settle(now_us())
  local first, last = '(' .. tenant .. '\0' .. after, '(' .. tenant .. '\1'
  local members
  if newest_first then
    local below = after == '' and last or first
    members = redis.call('ZRANGE', KEY_JOBS_OF_TENANTS, below, '[' .. tenant .. '\0', 'BYLEX', 'REV', 'LIMIT', 0, limit)
  else
    members = redis.call('ZRANGE', KEY_JOBS_OF_TENANTS, first, last, 'BYLEX', 'LIMIT', 0, limit)
  end
  for i, member in ipairs(members) do
    members[i] = seen(string.sub(member, #tenant + 2))
  end
  return members
end)

-- Of those that there are: id, state.
register('job_states', {'allow-oom'}, function(_, arguments)
  settle(now_us())
  local states = {}
  for _, job_id in ipairs(arguments) do
    local state = redis.call('HGET', key_of(job_id), 'state')
    if state then
      states[#states + 1] = job_id
      states[#states + 1] = state
    end
  end
  return states
end)
