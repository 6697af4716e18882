-- Tickets, and the orders in which they end, are lent, and stand with their nodes. As memory_tickets.py.
local FULL, LENT, OFFERED, LEFT = 0, 1, 2, 3

local function get_ticket(session_id)
  local packed = call('HGET', KEY_TICKETS, session_id)
  return packed and cmsgpack.unpack(packed)
end

local function standing(held)
  if held.offered_us then
    return OFFERED
  elseif held.left then
    return LEFT
  end
  return held.lent and LENT or FULL
end

local function over_us(held)
  return held.offered_us or math.min(held.ends_us, held.kept_us or held.ends_us)
end

local function due_us(held)
  if held.lent or not held.lend_us then
    return over_us(held)
  end
  return math.min(over_us(held), held.lend_us)
end

local function make_full(held)
  held.ran = true
  held.offered_us, held.kept_us, held.lend_us = nil, nil, nil
  held.lent, held.left = false, false
end

local function unlend(held)
  if call('ZREM', KEY_LENT, held.session_id) == 1 then
    for _, pair in ipairs(held.cost) do
      call('ZREM', KEY_LENT_OF .. pair[1], held.session_id)
    end
  end
end

local function note_ticket(held)
  call('HSET', KEY_TICKETS, held.session_id, cmsgpack.pack(held))
  call('ZADD', KEY_ENDS, due_us(held), 't:' .. held.session_id)
  call('ZADD', KEY_TICKETS_OF .. held.node, standing(held), held.session_id)
  if not held.lent then
    unlend(held)
  end
end

local function add_ticket(held)
  take(held.cost, 1)
  call('HINCRBY', KEY_TENANTS, held.tenant, 1)
  note_ticket(held)
  call('ZREM', KEY_GIVEN, held.session_id .. ':' .. held.node)
  call('ZREM', KEY_ORPHANS, held.session_id)
end

local function remove_ticket(held)
  take(held.cost, -1)
  if call('HINCRBY', KEY_TENANTS, held.tenant, -1) == 0 then
    call('HDEL', KEY_TENANTS, held.tenant)
  end
  call('HDEL', KEY_TICKETS, held.session_id)
  call('ZREM', KEY_ENDS, 't:' .. held.session_id)
  call('ZREM', KEY_TICKETS_OF .. held.node, held.session_id)
  unlend(held)
end

local function lend(held)
  if held.lent then
    return
  end
  held.lent = true
  call('ZADD', KEY_LENT, step.now, held.session_id)
  for _, pair in ipairs(held.cost) do
    call('ZADD', KEY_LENT_OF .. pair[1], step.now, held.session_id)
  end
  note_ticket(held)
  step.freed = true
end

-- Session ids of the first of those that stand so, or before it.
local function tickets_of(node, most_standing, count)
  return call('ZRANGEBYSCORE', KEY_TICKETS_OF .. node, '-inf', most_standing, 'LIMIT', 0, count or -1)
end

local function tickets_counted(node)
  return call('ZCOUNT', KEY_TICKETS_OF .. node, '-inf', LENT)
end
