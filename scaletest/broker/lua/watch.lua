-- A watcher's heartbeat, which keeps the clock of deadlines going on a queue whose workers all died.
-- ARGV 1 interval in microseconds
--@include now
--@include pulse
local at = deadline_clock(tonumber(ARGV[1]))
-- Delete leases of devices whose node is gone, which nobody else does. A few at a time, since there may be very many.
for _, key in ipairs(redis.call('SRANDMEMBER', OWN .. 'devices', 100)) do
  redis.call('ZREMRANGEBYSCORE', key, '-inf', micros(at - 86400000000))
  if redis.call('EXISTS', key) == 0 then redis.call('SREM', OWN .. 'devices', key) end
end
return 1
