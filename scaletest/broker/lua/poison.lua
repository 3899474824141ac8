-- Keep a job that must not be executed in RQ's failed registry, with the reason. It counts as
-- failed.
-- KEYS 1 leases  2 rq:wip:<q>  3 rq:failed:<q>  4 counters  5 failures:<q>
-- ARGV 1 id  2 attempt  3 worker  4 reason  5 reason as RQ stores it (base64 of zlib)
--@include now
--@include stamp
--@include failure
local call = redis.call
local leases, started, failed, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local failures = KEYS[5]
local id, attempt, worker, reason, stored = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local job, results = JOB .. id, RESULTS .. id
local YEAR = 31536000

if call('ZREM', leases, id .. ':' .. attempt .. ':' .. worker) == 0 then return 0 end
call('ZREM', started, id .. ':' .. attempt)
call('HSET', job, 'status', 'failed', 'ended_at', stamp(now), 'worker_name', worker, 'booked', '1')
call('PERSIST', job)
call('ZADD', failed, clock[1] + YEAR, id)
call('XADD', results, 'MAXLEN', 10, '*', 'type', 2, 'exc_string', stored, 'worker_name', worker)
call('EXPIRE', results, YEAR)
call('HINCRBY', counters, 'failed', 1)
call('HINCRBY', counters, 'poison', 1)
keep_failure(failures, {id = id, outcome = 'failed', reason = 'poison', error = reason,
  attempts = tonumber(attempt)}, worker)
return 1
