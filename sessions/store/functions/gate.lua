-- Admission. Every Function is one decision: first what has ended meanwhile ends, last what became free is given away. The first
-- argument is the time that a new store takes to settle, in µs. As memory_gate.py.

-- A life of the server's process.
local run_id

-- A store without an incarnation is new, or has lost its data. One that another life of a server has written may have lost what
-- was last: a server that was started again has what it had saved, a replica what had come to it.
local function begin(settle_us)
  step = { now = now_us(), freed = false, counts = {}, nodes = {} }
  run_id = run_id or string.match(call('INFO', 'server'), 'run_id:(%w+)')
  local state = call('HMGET', KEY_STATE, 'incarnation', 'settled_us', 'run_id')
  step.incarnation, step.settled_us = tonumber(state[1]), tonumber(state[2])
  if state[3] ~= run_id then
    step.incarnation = math.max(step.now, (step.incarnation or 0) + 1)
    step.settled_us = step.now + tonumber(settle_us)
    call('HSET', KEY_STATE, 'incarnation', step.incarnation, 'settled_us', step.settled_us, 'run_id', run_id)
    call('ZADD', KEY_ENDS, step.settled_us, 'settled')
  end
  end_due()
  fill()
end

-- ── nodes

-- Whether its node has it.
local function take_up(claimed)
  local held = get_ticket(claimed.session_id)
  if not held then
    return claim(claimed)
  end
  if held.node ~= claimed.node or held.offered_us then
    return false
  end
  if held.left or (held.lent and not held.kept_us) then -- the node's death alone has done that
    make_full(held)
    note_ticket(held)
  end
  return true
end

-- Its node came back from the dead without it, and its session may yet.
local function leave_behind(held, lend_us, end_us)
  held.left = true
  held.kept_us = math.min(held.kept_us or end_us, end_us)
  held.lend_us = math.min(held.lend_us or lend_us, lend_us)
  note_ticket(held)
end

local function announce(_, arguments)
  begin(arguments[1])
  local told, lost, known = cmsgpack.unpack(arguments[2]), {}, {}
  local before = get_node(told.node)
  node_tells(told)
  for _, claimed in ipairs(cmsgpack.unpack(arguments[3])) do
    claimed.ends_us = step.now + claimed.ends_us
    known[claimed.session_id] = true
    if not take_up(claimed) then
      lost[#lost + 1] = claimed.session_id
    end
  end
  for _, session_id in ipairs(tickets_of(told.node, LENT)) do
    if not known[session_id] then
      local held = get_ticket(session_id)
      if before and before.died_us then
        leave_behind(held, before.died_us + before.return_us, before.died_us + before.grace_us)
      else
        end_ticket(held, true)
      end
    end
  end
  step.freed = true
  fill()
  return { step.incarnation, lost }
end

local function renew(_, arguments)
  begin(arguments[1])
  local node, known = arguments[2], 0
  if living(node) then
    renew_node(node, tonumber(arguments[3]))
    known = 1
  end
  return { step.incarnation, known, tickets_counted(node) }
end

local function node_gone(_, arguments)
  begin(arguments[1])
  node_dies(arguments[2], step.now)
  return tickets_of(arguments[2], LENT)
end

-- ── answers

local function admitted(held)
  return { 'admitted', held.number, held.ends_us - step.now }
end

local function refused(reason, resource, retry_us)
  return { 'refused', reason, resource, retry_us }
end

local function told_place(place)
  local rank = position(place)
  place.told = math.min(place.told or rank, rank)
  local estimate = estimate_us(place.wish.kind, place.told)
  place.estimate_us = place.estimate_us or estimate
  note_place(place)
  return { 'waiting', place.told, estimate or false }
end

-- To be tried again when as many have left as wait.
local function not_now(reason, wish, resource)
  local estimate = estimate_us(wish.kind, count_waiting() + 1)
  return refused(reason, resource, estimate and math.min(math.max(estimate, 1000000), LONGEST_RETRY_US) or FULL_RETRY_US)
end

local function full(wish)
  if not open_to(wish) then
    return refused('settling', '', math.max(step.settled_us - step.now, NO_NODE_RETRY_US))
  end
  local lacking = lacks(wish)[1] or wish.cost[1]
  return not_now('full', wish, lacking and lacking[1] or '')
end

-- ── ask

local function lacks_of_tenant(wish)
  local lacking = {}
  for _, lack in ipairs(lacks(wish)) do
    if scope(lack[1]) == 'tenant' then
      lacking[#lacking + 1] = lack
    end
  end
  return lacking
end

-- Why it is of no use to wait; nil: it is of some.
local function never_seated(wish, place)
  local kept = living(wish.node)
  if not kept then
    return not place and refused('settling', '', NO_NODE_RETRY_US) or nil
  elseif kept.draining then
    return refused('draining', '', NO_NODE_RETRY_US)
  end
  know(wish.cost)
  for _, pair in ipairs(wish.cost) do
    if never(pair[1], pair[2], wish.priority) then
      return refused('too_big', pair[1], 0)
    end
  end
  if place then
    return step.now - place.since_us >= wish.longest_wait_us and not_now('waited', wish, '') or nil
  end
  local lacking = lacks_of_tenant(wish)
  if not find_victims(wish, lacking) then
    return refused('quota', lacking[1][1], QUOTA_RETRY_US)
  end
end

-- It asks for what it has.
local function asks_again(held, wish, place)
  leave(place)
  if not held.ran then
    held.ends_us = step.now + wish.life_us
  end
  make_full(held)
  note_ticket(held)
  fill()
  return admitted(held)
end

-- Those who wait are looked through; whether it was the turn of this one.
local function turn_of(wish)
  step.freed = true
  fill(wish.session_id)
  return call('HEXISTS', KEY_PLACES, wish.session_id) == 0
end

local function newcomer(wish)
  local others = count_waiting()
  local victims = open_to(wish) and find_victims(wish, lacks(wish))
  if victims and others == 0 then
    return admitted(seat(wish, victims))
  end
  local is_full = others >= wish.longest_queue
  local last = is_full and wish.longest_queue > 0 and gives_way(wish)
  local may_enter = wish.may_wait and (not is_full or last)
  if not victims and not may_enter then
    return full(wish)
  end
  local place = enter(wish)
  if victims and turn_of(wish) then
    return admitted(get_ticket(wish.session_id))
  end
  if not may_enter then
    leave_room(place)
    return full(wish)
  end
  if last and count_waiting() > wish.longest_queue then
    leave(last)
    if turn_of(wish) then
      return admitted(get_ticket(wish.session_id))
    end
  end
  return told_place(place)
end

local function same_pairs(one, other)
  for index, pair in ipairs(one) do
    local beside = other[index]
    if not beside or pair[1] ~= beside[1] or pair[2] ~= beside[2] then
      return false
    end
  end
  return #one == #other
end

local function same_quota(one, other)
  for name, parts in pairs(one) do
    if other[name] ~= parts then
      return false
    end
  end
  for name in pairs(other) do
    if not one[name] then
      return false
    end
  end
  return true
end

local function wait_on(wish, place)
  local before = place.wish
  wish.tenant, wish.kind, wish.priority, wish.size = before.tenant, before.kind, before.priority, before.size
  renew_place(place, wish)
  local same = before.node == wish.node and same_pairs(before.cost, wish.cost) and same_quota(before.quota, wish.quota)
  if not same and turn_of(wish) then
    return admitted(get_ticket(wish.session_id))
  end
  if wish.may_wait then
    return told_place(place)
  end
  leave(place)
  fill()
  return full(wish)
end

local function ask(_, arguments)
  begin(arguments[1])
  local wish = cmsgpack.unpack(arguments[2])
  local held, place = get_ticket(wish.session_id), get_place(wish.session_id)
  if held and living(wish.node) and held.node == wish.node and same_pairs(held.cost, wish.cost) then
    return asks_again(held, wish, place)
  end
  local no = never_seated(wish, place)
  if no then
    leave(place)
    fill()
    return no
  end
  return place and wait_on(wish, place) or newcomer(wish)
end

-- ── giving back

local function release(_, arguments)
  begin(arguments[1])
  local session_id, node = arguments[2], arguments[3]
  local held, place = get_ticket(session_id), get_place(session_id)
  if held and held.node == node then
    give_back(held)
  end
  if place and place.wish.node == node then
    leave(place)
  end
  call('ZREM', KEY_ORPHANS, session_id)
  fill()
end

local function keep(_, arguments)
  begin(arguments[1])
  local session_id, node, lend_us = arguments[2], arguments[3], tonumber(arguments[5])
  local held = get_ticket(session_id)
  if not held or held.node ~= node or held.offered_us then
    return 0
  end
  held.kept_us, held.lend_us = step.now + tonumber(arguments[4]), step.now + lend_us
  held.left = false
  held.lent = held.lent and lend_us == 0
  note_ticket(held)
  if lend_us == 0 then
    lend(held)
  end
  fill()
  return 1
end

local function orphans(_, arguments)
  begin(arguments[1])
  local taken = call('ZRANGEBYSCORE', KEY_ORPHANS, '-inf', step.now, 'LIMIT', 0, arguments[2])
  for _, session_id in ipairs(taken) do
    call('ZADD', KEY_ORPHANS, step.now + ORPHAN_AGAIN_US, session_id)
  end
  return taken
end

-- Those that end something, or hold what is held, work also when the memory is used up.
register('announce', { 'allow-oom' }, announce)
register('renew', { 'allow-oom' }, renew)
register('node_gone', { 'allow-oom' }, node_gone)
register('ask', {}, ask)
register('release', { 'allow-oom' }, release)
register('keep', { 'allow-oom' }, keep)
register('orphans', { 'allow-oom' }, orphans)
