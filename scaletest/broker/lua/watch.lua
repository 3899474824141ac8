-- A watcher's heartbeat, which keeps the clock of deadlines going on a queue whose workers all
-- died.
-- KEYS 1 scaletest:devices
-- ARGV 1 interval in microseconds
--@include now
--@include pulse
local call = redis.call
local devices = KEYS[1]
local interval = tonumber(ARGV[1])
local DAY_US = 86400000000

local at = deadline_clock(interval)
-- Delete leases of devices whose node is gone, which nobody else does. A few at a time, since there
-- may be very many.
for _, key in ipairs(call('SRANDMEMBER', devices, 100)) do
  call('ZREMRANGEBYSCORE', key, '-inf', micros(at - DAY_US))
  if call('EXISTS', key) == 0 then call('SREM', devices, key) end
end
return 1
