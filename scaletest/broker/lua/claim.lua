-- Lease one free slot of a node's devices. Repeated by the same owner it answers the slot that the owner holds.
-- KEYS the devices' leases, in order
-- ARGV 1 owner  2 lease in microseconds  3 slots a device has  4 which device: 0 the first with a free slot,
--      -1 the least used, 1 the most used with a free slot  5 heartbeat interval in microseconds
-- Answer: {number of the key, slot}, both from 0, nil when no slot is free
--@include now
--@include pulse
local call = redis.call
-- a worker that waits for a slot has seen Redis alive, and may be the only one
local at = deadline_clock(tonumber(ARGV[5]))
local function lease(number, slot)
  call('ZADD', KEYS[number], micros(at + ARGV[2]), slot .. ':' .. ARGV[1])
  call('SADD', OWN .. 'devices', KEYS[number])
  return {number - 1, slot}
end

local choice, best
for number, key in ipairs(KEYS) do
  call('ZREMRANGEBYSCORE', key, '-inf', '(' .. micros(at))
  local taken, used = {}, 0
  for _, member in ipairs(call('ZRANGE', key, 0, -1)) do
    local slot, owner = string.match(member, '^(%d+):(.+)$')
    if owner == ARGV[1] then return lease(number, tonumber(slot)) end
    taken[tonumber(slot)] = true
    used = used + 1
  end
  local free
  for slot = 0, ARGV[3] - 1 do
    if not taken[slot] then free = slot; break end
  end
  local weight = used * tonumber(ARGV[4])
  if free and (not best or weight > best) then choice, best = {number, free}, weight end
end
if not choice then return false end
return lease(choice[1], choice[2])
