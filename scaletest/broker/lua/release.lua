-- Put a request back at the front of its queue, as if it had never been taken: a worker stops before it is done.
-- KEYS 1 leases  2 rq:queue:<q>  3 rq:wip:<q>
-- ARGV 1 id  2 attempt  3 worker
--@include executions
local call = redis.call
if call('ZREM', KEYS[1], ARGV[1] .. ':' .. ARGV[2] .. ':' .. ARGV[3]) == 0 then return 0 end
forget_executions(KEYS[3], RQ .. 'worker:' .. ARGV[3], ARGV[1], ARGV[2])
if call('EXISTS', RQ .. 'job:' .. ARGV[1]) == 0 then return 0 end
call('HSET', RQ .. 'job:' .. ARGV[1], 'status', 'queued', 'started_at', '', 'worker_name', '',
  'counted', '1')
call('LPUSH', KEYS[2], ARGV[1])
return 1
