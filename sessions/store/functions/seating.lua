-- Who gets what is free: what is lacking, what may be taken from those who are away, whose turn it is; and what ends by itself.
-- As memory_seating.py.

local function append_news(node, packed)
  local key = KEY_NEWS .. node
  call('XADD', key, 'MAXLEN', NEWS_KEPT, '*', 'news', packed)
  call('EXPIRE', key, NEWS_KEPT_S)
end

local function tell(node, news)
  append_news(node, cmsgpack.pack(news))
end

-- ── what is lacking

-- How much of what, sorted by name: pairs. What the session's own ticket gives back is no lack.
local function lacks(wish, blocked)
  local own, lacking = {}, {}
  local held = get_ticket(wish.session_id)
  for _, pair in ipairs(held and held.cost or {}) do
    own[pair[1]] = pair[2]
  end
  know(wish.cost)
  for _, pair in ipairs(wish.cost) do
    local name = pair[1]
    local need = pair[2] - (own[name] or 0)
    local short = need - free(name, wish.quota, wish.priority)
    if need > 0 and (short > 0 or (blocked and blocked[name])) then
      lacking[#lacking + 1] = { name, short }
    end
  end
  return lacking
end

local function part_of(held, name)
  for _, pair in ipairs(held.cost) do
    if pair[1] == name then
      return pair[2]
    end
  end
  return 0
end

-- Lent tickets that make room for it, those lent longest first; nil: they do not make enough.
local function find_victims(wish, lacking)
  local taken, is_taken = {}, {}
  for _, lack in ipairs(lacking) do
    local name, left = lack[1], lack[2]
    for _, held in ipairs(taken) do
      left = left - part_of(held, name)
    end
    for _, session_id in ipairs(left > 0 and call('ZRANGE', KEY_LENT_OF .. name, 0, LENT_READ - 1) or {}) do
      if left > 0 and session_id ~= wish.session_id and not is_taken[session_id] then
        local held = get_ticket(session_id)
        taken[#taken + 1] = held
        is_taken[session_id] = true
        left = left - part_of(held, name)
      end
    end
    if left > 0 then
      return nil
    end
  end
  return taken
end

-- Whether its node takes anybody, and the store lets anybody in.
local function open_to(wish)
  local kept = living(wish.node)
  local settled = wish.priority == RESUME or step.now >= step.settled_us
  return settled and kept and kept.ready and not kept.draining
end

-- Who lacks something of its host waits for all of host and node; who lacks something of its node or tenant, for that.
local function block(blocked, wish, lacking)
  local scopes = {}
  for _, lack in ipairs(lacking) do
    scopes[scope(lack[1])] = true
  end
  scopes.node = scopes.node or scopes.host
  for _, pair in ipairs(wish.cost) do
    if scopes[scope(pair[1])] then
      blocked[pair[1]] = true
    end
  end
end

-- ── averages

local function moved(average, to)
  return average + math.floor((to - average) / SMOOTHING)
end

-- A long pause says little: it counts as eight intervals at most. Who leave in one step count as one.
local function note_departure(kind)
  local last = tonumber(call('HGET', KEY_DEPARTED, kind)) or step.now
  call('HSET', KEY_DEPARTED, kind, step.now)
  local passed = step.now - last
  if passed > 0 then
    local interval = tonumber(call('HGET', KEY_INTERVAL, kind))
    call('HSET', KEY_INTERVAL, kind, interval and moved(interval, math.min(passed, SMOOTHING * interval)) or passed)
  end
end

local function estimate_us(kind, rank)
  local interval = tonumber(call('HGET', KEY_INTERVAL, kind))
  return interval and interval * rank
end

local function note_wait(place)
  if place.estimate_us then
    local wrong = math.abs(place.estimate_us - (step.now - place.since_us))
    local average = tonumber(call('HGET', KEY_STATE, 'wait_error_us'))
    call('HSET', KEY_STATE, 'wait_error_us', average and moved(average, wrong) or wrong)
  end
end

-- ── ending

local function put_bounded(key, member, most)
  call('ZADD', key, step.now, member)
  call('ZREMRANGEBYRANK', key, 0, -most - 1)
end

-- Its node cannot have it back.
local function give_away(held)
  put_bounded(KEY_GIVEN, held.session_id .. ':' .. held.node, GIVEN_KEPT)
  call('ZREMRANGEBYSCORE', KEY_GIVEN, '-inf', step.now - GIVEN_KEPT_US)
end

local function give_back(held)
  remove_ticket(held)
  step.freed = true
  note_departure(held.kind)
end

-- Not because its node has given it back.
local function end_ticket(held, silently)
  give_back(held)
  if held.ran then
    give_away(held)
    put_bounded(KEY_ORPHANS, held.session_id, ORPHANS_KEPT)
    if not silently then
      tell(held.node, { type = 'Evicted', session_id = held.session_id, number = held.number })
    end
  end
end

-- Without a ticket.
local function leave(place)
  if place then
    leave_room(place)
    step.freed = true -- for those who were not to overtake it
  end
end

-- ── giving

-- Numbers of tickets only grow.
local function next_number()
  local last = tonumber(call('HGET', KEY_STATE, 'number')) or 0
  local number = math.max(last + 1, step.now)
  call('HSET', KEY_STATE, 'number', number)
  return number
end

-- A ticket, in place of one that it had; offered until then, or a full one.
local function seat(wish, victims, offered_us)
  for _, victim in ipairs(victims) do
    end_ticket(victim)
  end
  local before, ends_us = get_ticket(wish.session_id), step.now + wish.life_us
  if before then
    remove_ticket(before)
    give_away(before)
    step.freed = true
    ends_us = before.ran and math.min(ends_us, before.ends_us) or ends_us
  end
  local held = {
    session_id = wish.session_id,
    tenant = wish.tenant,
    kind = wish.kind,
    node = wish.node,
    cost = wish.cost,
    number = next_number(),
    ends_us = ends_us,
    ran = not offered_us or (before and before.ran) or false,
    offered_us = offered_us,
    lent = false,
    left = false,
  }
  add_ticket(held)
  return held
end

local function has_room(cost)
  know(cost)
  for _, pair in ipairs(cost) do
    if free(pair[1], {}, RESUME) < pair[2] then
      return false
    end
  end
  return true
end

-- One that its node says to have, and the store has not: it is there again, unless it was given away, or may have been: a node
-- that was away until the store had settled was mute, and others may have its seats.
local function claim(held)
  local is_given = call('ZSCORE', KEY_GIVEN, held.session_id .. ':' .. held.node)
  if is_given or (step.now >= step.settled_us and not has_room(held.cost)) then
    return false
  end
  local last = tonumber(call('HGET', KEY_STATE, 'number')) or 0
  call('HSET', KEY_STATE, 'number', math.max(last, held.number))
  add_ticket(held)
  return true
end

-- ── whose turn it is

-- Nor is there any for another of the same kind at this node; or there may be for one of another tenant.
local NO_ROOM, NO_ROOM_FOR_TENANT = 1, 2

-- Lent tickets that make room for it, if nobody has first call on what it lacks.
local function find_victims_for_its_turn(wish, lacking, blocked)
  for _, lack in ipairs(lacking) do
    if blocked[lack[1]] then
      return nil
    end
  end
  return find_victims(wish, lacking)
end

-- What it lacks of host and node, and of its tenant.
local function sorted_out(lacking)
  local shared, own = {}, {}
  for _, lack in ipairs(lacking) do
    local kept = scope(lack[1]) == 'tenant' and own or shared
    kept[#kept + 1] = lack
  end
  return shared, own
end

-- nil: it has got its ticket. Else whether those of other tenants find no room either.
local function grant(place, blocked, at_once)
  local wish = place.wish
  if not open_to(wish) then
    return NO_ROOM
  end
  local lacking = lacks(wish, blocked)
  local shared, own = sorted_out(lacking)
  local has_room = find_victims_for_its_turn(wish, shared, blocked)
  local victims = has_room and find_victims_for_its_turn(wish, lacking, blocked)
  if not victims then
    block(blocked, wish, has_room and own or lacking)
    return has_room and NO_ROOM_FOR_TENANT or NO_ROOM
  end
  note_wait(place)
  served(place)
  seat(wish, victims, not at_once and step.now + wish.place_us or nil)
  if not at_once then
    tell(wish.node, { type = 'Offered', session_id = wish.session_id })
  end
end

-- Returns how many have been granted in all.
local function look_through(granted, asker)
  local blocked, lanes, lanes_read = {}, {}, 0
  for priority = RESUME, BATCH do
    for _, name in ipairs(call('ZRANGE', KEY_WAITING .. priority, 0, PLACES_READ - 1)) do
      local of_tenant = lane_of(name)
      if not lanes[of_tenant] and not lanes[without_tenant(of_tenant)] then
        if granted == GRANTS_AT_ONCE then
          call('ZADD', KEY_ENDS, step.now, 'more')
          return granted
        end
        local session_id = session_of(name)
        local refusal = grant(get_place(session_id), blocked, session_id == asker)
        if refusal then
          lanes[refusal == NO_ROOM and without_tenant(of_tenant) or of_tenant] = true
          lanes_read = lanes_read + 1
        else
          granted = granted + 1
        end
        if lanes_read == LANES_READ then
          return granted
        end
      end
    end
  end
  return granted
end

-- Those who wait get what is free. The one who asks just now has its ticket at once; the others are offered theirs.
local function fill(asker)
  local granted = 0
  while step.freed and count_waiting() > 0 do
    step.freed = false
    granted = look_through(granted, asker)
  end
  step.freed = false
end

-- ── what ends by itself: t:<session> a ticket, or it is lent; w:<session> a place; n:<node> a lease; l:<node> the time for
-- which a dead node's tickets are kept for their sessions alone; g:<node> the time for which they are kept at all; `settled`;
-- `more` may be given than one call does

local due = {}

function due.t(session_id)
  local held = get_ticket(session_id)
  if over_us(held) <= step.now then
    end_ticket(held)
  else
    lend(held)
  end
end

function due.w(session_id)
  leave(get_place(session_id))
end

function due.n(node, at_us)
  node_dies(node, at_us)
end

function due.l(node)
  local batch = tickets_of(node, FULL, DUE_AT_ONCE)
  for _, session_id in ipairs(batch) do
    lend(get_ticket(session_id))
  end
  if #batch < DUE_AT_ONCE then
    call('ZREM', KEY_ENDS, 'l:' .. node)
  end
end

function due.g(node)
  local batch = tickets_of(node, LEFT, DUE_AT_ONCE)
  for _, session_id in ipairs(batch) do
    end_ticket(get_ticket(session_id))
  end
  if #batch < DUE_AT_ONCE then
    call('ZREM', KEY_ENDS, 'g:' .. node)
    remove_node(node)
  end
end

local function end_due()
  for _, item in ipairs(call('ZRANGEBYSCORE', KEY_ENDS, '-inf', step.now, 'LIMIT', 0, DUE_AT_ONCE)) do
    local at_us = tonumber(call('ZSCORE', KEY_ENDS, item))
    if at_us then -- one before it may have changed that
      local what, name = string.match(item, '^(%a):(.*)$')
      if what then
        due[what](name, at_us)
      else
        call('ZREM', KEY_ENDS, item)
        step.freed = true
      end
    end
  end
end
