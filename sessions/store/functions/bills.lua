-- What tenants have used: hashes of thousandths. As memory_bills.py.

-- The usage is all so far: what is less than was told before is an old word, and changes nothing.
local function bill(_, arguments)
  local tenant, billed = arguments[1], KEY_BILLED .. arguments[2]
  for _, pair in ipairs(cmsgpack.unpack(arguments[3])) do
    local what, parts = pair[1], pair[2]
    local more = parts - (tonumber(call('HGET', billed, what)) or 0)
    if more > 0 then
      call('HSET', billed, what, parts)
      call('HINCRBY', KEY_BILLS, tenant .. '\0' .. what, more)
    end
  end
  call('EXPIRE', billed, BILLED_KEPT_S + tonumber(arguments[4]))
end

register('bill', { 'allow-oom' }, bill) -- what is to be deleted is billed first
register('bills', { 'no-writes' }, function()
  return call('HGETALL', KEY_BILLS)
end)
