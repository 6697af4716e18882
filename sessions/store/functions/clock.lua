-- The store's time in µs. Tests put a clock of their own in place of this file.
local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
