-- Keep a job that must not be executed in RQ's failed registry, with the reason. It counts as failed.
-- KEYS 1 leases  2 rq:wip:<q>  3 rq:failed:<q>  4 counters
-- ARGV 1 id  2 attempt  3 worker  4 reason as RQ stores it (base64 of zlib)
--@include now
--@include stamp
local call = redis.call
if call('ZREM', KEYS[1], ARGV[1] .. ':' .. ARGV[2] .. ':' .. ARGV[3]) == 0 then return 0 end
call('ZREM', KEYS[2], ARGV[1] .. ':' .. ARGV[2])
local year = 31536000
call('HSET', RQ .. 'job:' .. ARGV[1], 'status', 'failed', 'ended_at', stamp(now), 'worker_name', ARGV[3],
  'booked', '1')
call('PERSIST', RQ .. 'job:' .. ARGV[1])
call('ZADD', KEYS[3], clock[1] + year, ARGV[1])
call('XADD', RQ .. 'results:' .. ARGV[1], 'MAXLEN', 10, '*', 'type', 2, 'exc_string', ARGV[4], 'worker_name', ARGV[3])
call('EXPIRE', RQ .. 'results:' .. ARGV[1], year)
call('HINCRBY', KEYS[4], 'failed', 1)
call('HINCRBY', KEYS[4], 'poison', 1)
return 1
