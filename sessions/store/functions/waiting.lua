-- The waiting room: start-time fair queueing between the tenants of one priority. As memory_waiting.py.
local function get_place(session_id)
  local packed = call('HGET', KEY_PLACES, session_id)
  return packed and cmsgpack.unpack(packed)
end

local function note_place(place)
  call('HSET', KEY_PLACES, place.wish.session_id, cmsgpack.pack(place))
end

-- What those have in common of whom the second finds no room when the first finds none.
local function lane(wish)
  return wish.tenant .. '\0' .. wish.node .. '\0' .. wish.kind
end

-- In the order of arrival: 16 digits, the session, its lane.
local function place_name(place)
  return string.format('%016d:', place.number) .. place.wish.session_id .. ':' .. lane(place.wish) -- %s would end at the NUL
end

local function session_of(name)
  return string.match(name, '^[^:]*', 18)
end

local function lane_of(name)
  return string.sub(name, string.find(name, ':', 18, true) + 1)
end

local function without_tenant(its_lane)
  return string.sub(its_lane, string.find(its_lane, '\0', 1, true) + 1)
end

local function virtual(priority)
  return tonumber(call('HGET', KEY_STATE, 'virtual_' .. priority)) or 0
end

local function stand(place)
  call('ZADD', KEY_WAITING .. place.wish.priority, place.tag, place_name(place))
  call('ZADD', KEY_ENDS, step.now + place.wish.place_us, 'w:' .. place.wish.session_id)
  note_place(place)
end

local function tag_of(wish)
  return math.max(virtual(wish.priority), tonumber(call('ZSCORE', KEY_FINISH .. wish.priority, wish.tenant)) or 0)
end

-- Who is to leave a room that is full: the last one of this priority, if it is served after one who comes now would be.
local function gives_way(wish)
  local last = call('ZRANGE', KEY_WAITING .. wish.priority, -1, -1)[1]
  local place = last and get_place(session_of(last))
  return place and place.tag > tag_of(wish) and place or nil
end

local function enter(wish)
  local tag = tag_of(wish)
  call('ZADD', KEY_FINISH .. wish.priority, tag + wish.size, wish.tenant)
  local number = call('HINCRBY', KEY_STATE, 'arrivals', 1)
  local place = { wish = wish, since_us = step.now, number = number, tag = tag }
  stand(place)
  return place
end

-- It is asked for again, perhaps for another node: at its old place.
local function renew_place(place, wish)
  call('ZREM', KEY_WAITING .. place.wish.priority, place_name(place))
  place.wish = wish
  stand(place)
end

local function remove_place(place)
  local priority, session_id = place.wish.priority, place.wish.session_id
  call('ZREM', KEY_WAITING .. priority, place_name(place))
  call('HDEL', KEY_PLACES, session_id)
  call('ZREM', KEY_ENDS, 'w:' .. session_id)
  if call('EXISTS', KEY_WAITING .. priority) == 0 then
    call('DEL', KEY_FINISH .. priority)
    call('HDEL', KEY_STATE, 'virtual_' .. priority)
  else
    call('ZREMRANGEBYSCORE', KEY_FINISH .. priority, '-inf', virtual(priority))
  end
end

-- Without a ticket: it has cost its tenant nothing.
local function leave_room(place)
  call('ZINCRBY', KEY_FINISH .. place.wish.priority, -place.wish.size, place.wish.tenant)
  remove_place(place)
end

local function served(place)
  local priority = place.wish.priority
  call('HSET', KEY_STATE, 'virtual_' .. priority, math.max(virtual(priority), place.tag))
  remove_place(place)
end

local function count_waiting()
  return call('HLEN', KEY_PLACES)
end

-- From 1.
local function position(place)
  local rank = call('ZRANK', KEY_WAITING .. place.wish.priority, place_name(place)) + 1
  for ahead = RESUME, place.wish.priority - 1 do
    rank = rank + call('ZCARD', KEY_WAITING .. ahead)
  end
  return rank
end
