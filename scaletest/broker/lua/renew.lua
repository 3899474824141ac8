-- Extend the lease of a device's slot, also an expired one that nobody claimed.
-- KEYS 1 the device's leases
-- ARGV 1 <slot>:<owner>  2 lease in microseconds  3 heartbeat interval in microseconds
-- Answer: 1, or 0 when the lease is lost
--@include now
--@include pulse
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], micros(deadline_clock(tonumber(ARGV[3])) + ARGV[2]), ARGV[1])
return 1
