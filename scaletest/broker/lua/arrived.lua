-- Count submitted requests in the slot of this moment (ended.lua).
local function arrived(queue, count)
  local slot = math.floor(clock[1] / 10)
  local key, field = OWN .. 'queue:' .. queue .. ':slots', 'a' .. slot % 64
  local row = redis.call('HGET', key, field)
  if row and #row == 16 then
    local of, before = struct.unpack('<dd', row)
    if of == slot then count = count + before end
  end
  redis.call('HSET', key, field, struct.pack('<dd', slot, count))
end
