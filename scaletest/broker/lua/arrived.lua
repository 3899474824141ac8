-- Count submitted requests in the slot of this moment (ended.lua). slots: that ring.
local function arrived(slots, count)
  local slot = math.floor(clock[1] / 10)
  local field = 'a' .. slot % 64
  local row = redis.call('HGET', slots, field)
  if row and #row == 16 then
    local of, before = struct.unpack('<dd', row)
    if of == slot then count = count + before end
  end
  redis.call('HSET', slots, field, struct.pack('<dd', slot, count))
end
