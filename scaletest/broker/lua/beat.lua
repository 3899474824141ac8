-- A worker's heartbeat: it lives, and what it runs is still its own.
-- KEYS 1 rq:worker:<worker>  2 leases  3 workers:<q>  4 rq:wip:<q>  5 pulse  6 rq:workers  7 rq:workers:<q>
-- ARGV 1 worker  2 lease in microseconds  3 id of the running request or ''  4 attempt  5 interval in microseconds
--      6 worker hash's time to live in seconds  then pairs of fields to write into the worker hash
-- Answer: 1 while the lease is held (or nothing runs), 0 when it was lost.
--@include now
--@include stamp
--@include pulse
local call = redis.call
after_outage(tonumber(ARGV[5]))
call('SET', KEYS[5], micros(now))
call('ZADD', KEYS[3], micros(now + ARGV[2]), ARGV[1])
call('SADD', KEYS[6], KEYS[1])
call('SADD', KEYS[7], KEYS[1])
call('HSET', KEYS[1], 'last_heartbeat', stamp(now), unpack(ARGV, 7))
call('EXPIRE', KEYS[1], ARGV[6])
if ARGV[3] == '' then return 1 end
local member = ARGV[3] .. ':' .. ARGV[4] .. ':' .. ARGV[1]
if not call('ZSCORE', KEYS[2], member) then return 0 end
call('ZADD', KEYS[2], micros(now + ARGV[2]), member)
-- What runs longer than a moment becomes visible to RQ's tools. Its score lies far ahead of our lease, so that stock
-- maintenance, which fails what has expired when it merely counts it, never acts before our reaper.
call('ZADD', KEYS[4], clock[1] + 600, ARGV[3] .. ':' .. ARGV[4])
local executions = call('ZRANGE', 'rq:executions:' .. ARGV[3], 0, -1)
if #executions > 0 then
  -- RQ's own code runs it under an execution id of its own
  call('ZREM', KEYS[4], ARGV[3] .. ':' .. ARGV[4])
  for _, execution in ipairs(executions) do
    call('ZADD', KEYS[4], clock[1] + 600, ARGV[3] .. ':' .. execution)
    call('EXPIRE', 'rq:execution:' .. ARGV[3] .. ':' .. execution, 660)
  end
  call('EXPIRE', 'rq:executions:' .. ARGV[3], 660)
else
  local job = 'rq:job:' .. ARGV[3]
  if call('HGET', job, 'status') == 'queued' then
    local enqueued = call('HGET', KEYS[1], 'answer')
    local started = tonumber(string.match(enqueued or '', ':(%d+)$') or now)
    call('HSET', job, 'status', 'started', 'worker_name', ARGV[1], 'started_at', stamp(started))
  end
  call('HSET', job, 'last_heartbeat', stamp(now))
end
return 1
