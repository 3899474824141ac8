-- Put a request back at the front of its queue, as if it had never been taken: a worker stops
-- before it is done.
-- KEYS 1 leases  2 rq:queue:<q>  3 rq:wip:<q>
-- ARGV 1 id  2 attempt  3 worker
--@include executions
local call = redis.call
local leases, queue, started = KEYS[1], KEYS[2], KEYS[3]
local id, attempt, worker = ARGV[1], ARGV[2], ARGV[3]
local job = JOB .. id

if call('ZREM', leases, id .. ':' .. attempt .. ':' .. worker) == 0 then return 0 end
forget_executions(started, WORKER .. worker, id, attempt)
if call('EXISTS', job) == 0 then return 0 end
call('HDEL', job, 'booked')
call('HSET', job, 'status', 'queued', 'started_at', '', 'worker_name', '', 'counted', '1')
call('LPUSH', queue, id)
return 1
