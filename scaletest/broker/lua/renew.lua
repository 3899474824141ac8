-- Extend the lease of a device's slot, also an expired one that nobody claimed.
-- KEYS 1 the device's leases
-- ARGV 1 <slot>:<owner>  2 lease in microseconds  3 heartbeat interval in microseconds
-- Answer: 1, or 0 when the lease is lost
--@include now
--@include pulse
local leases = KEYS[1]
local member, lease_us, interval = ARGV[1], ARGV[2], tonumber(ARGV[3])

if not redis.call('ZSCORE', leases, member) then return 0 end
redis.call('ZADD', leases, micros(deadline_clock(interval) + lease_us), member)
return 1
