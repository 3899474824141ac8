-- Lease one free slot of the least used of a node's devices. Repeated by the same owner it answers
-- the slot that the owner holds.
-- KEYS the devices' leases, in order
-- ARGV 1 owner  2 lease in microseconds  3 slots a device has
--      4 heartbeat interval in microseconds
-- Answer: {number of the key, slot}, both from 0, nil when no slot is free
--@include now
--@include pulse
local call = redis.call
local owner, lease_us, slots = ARGV[1], ARGV[2], tonumber(ARGV[3])
local interval = tonumber(ARGV[4])
-- a worker that waits for a slot has seen Redis alive, and may be the only one
local at = deadline_clock(interval)

local function lease(number, slot)
  call('ZADD', KEYS[number], micros(at + lease_us), slot .. ':' .. owner)
  call('SADD', DEVICES, KEYS[number])
  return {number - 1, slot}
end

local choice, least
for number, key in ipairs(KEYS) do
  call('ZREMRANGEBYSCORE', key, '-inf', '(' .. micros(at))
  local taken, used = {}, 0
  for _, member in ipairs(call('ZRANGE', key, 0, -1)) do
    local slot, holder = string.match(member, '^(%d+):(.+)$')
    if holder == owner then return lease(number, tonumber(slot)) end
    taken[tonumber(slot)] = true
    used = used + 1
  end
  local free
  for slot = 0, slots - 1 do
    if not taken[slot] then free = slot; break end
  end
  if free and (not least or used < least) then choice, least = {number, free}, used end
end
if not choice then return false end
return lease(choice[1], choice[2])
