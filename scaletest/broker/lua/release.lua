-- Put a request back at the front of its queue, as if it had never been taken: a worker stops before it is done.
-- KEYS 1 leases  2 rq:queue:<q>  3 rq:wip:<q>
-- ARGV 1 id  2 attempt  3 worker
local call = redis.call
if call('ZREM', KEYS[1], ARGV[1] .. ':' .. ARGV[2] .. ':' .. ARGV[3]) == 0 then return 0 end
call('ZREM', KEYS[3], ARGV[1] .. ':' .. ARGV[2])
local executions = 'rq:executions:' .. ARGV[1]
for _, execution in ipairs(call('ZRANGE', executions, 0, -1)) do
  call('ZREM', KEYS[3], ARGV[1] .. ':' .. execution)
  call('DEL', 'rq:execution:' .. ARGV[1] .. ':' .. execution)
end
call('DEL', executions)
if call('EXISTS', 'rq:job:' .. ARGV[1]) == 0 then return 0 end
call('HSET', 'rq:job:' .. ARGV[1], 'status', 'queued', 'started_at', '', 'worker_name', '',
  'counted', '1')
call('LPUSH', KEYS[2], ARGV[1])
return 1
