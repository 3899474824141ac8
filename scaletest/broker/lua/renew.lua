-- Extend the lease of a device's slot, also an expired one that nobody took.
-- KEYS 1 the device's leases
-- ARGV 1 <slot>:<owner>  2 lease in microseconds
-- Answer: 1, or 0 when the lease is lost
--@include now
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], micros(now + ARGV[2]), ARGV[1])
redis.call('EXPIRE', KEYS[1], 86400)
return 1
