-- Take back what dead workers held, and forget dead workers and clients. Any number of reapers may call it.
-- KEYS 1 leases  2 workers:<q>  3 rq:queue:<q>  4 rq:wip:<q>  5 counters  6 rq:workers:<q>
-- ARGV 1 queue  2 attempts a request may take  3 interval in microseconds
-- Answer: {requeued, failed}
--@include now
--@include stamp
--@include pulse
local call = redis.call
if after_outage(tonumber(ARGV[3])) then return {0, 0} end
local requeued, failed = 0, 0

local function forget_execution(id, attempt)
  call('ZREM', KEYS[4], id .. ':' .. attempt)
  local executions = 'rq:executions:' .. id
  for _, execution in ipairs(call('ZRANGE', executions, 0, -1)) do
    call('ZREM', KEYS[4], id .. ':' .. execution)
    call('DEL', 'rq:execution:' .. id .. ':' .. execution)
  end
  call('DEL', executions)
end

local function fail_as_lost(id, job, attempt, lost_by)
  local text = 'lost ' .. attempt .. ' times, by ' .. lost_by
  local client = call('HGET', job, 'reply_to')
  local enqueued = tonumber(call('HGET', job, 'enqueued_us') or now)
  local reply = cjson.encode({id = id, outcome = 'failed', reason = 'lost', error = text, attempts = attempt,
    enqueued_s = enqueued / 1e6, exit_code = cjson.null, wait_s = 0, run_s = 0})
  if client and call('XADD', 'scaletest:replies:' .. client, 'NOMKSTREAM', '*', 'r', reply, 'e', micros(now)) then
    call('DEL', job)
  else
    call('HSET', job, 'status', 'failed', 'ended_at', stamp(now), 'booked', '1')
    call('ZADD', 'rq:failed:' .. ARGV[1], clock[1] + 31536000, id)
    call('XADD', 'rq:results:' .. id, 'MAXLEN', 10, '*', 'type', 2, 'exc_string', '', 'worker_name', lost_by)
    call('EXPIRE', 'rq:results:' .. id, 31536000)
  end
  call('HINCRBY', KEYS[5], 'failed', 1)
  call('HINCRBY', KEYS[5], 'lost', 1)
end

for _, member in ipairs(call('ZRANGEBYSCORE', KEYS[1], '-inf', micros(now), 'LIMIT', 0, 200)) do
  call('ZREM', KEYS[1], member)
  local id, attempt, worker = string.match(member, '^([^:]+):(%d+):(.+)$')
  local job = 'rq:job:' .. (id or '')
  if id then forget_execution(id, attempt) end
  if id and call('EXISTS', job) == 1 then
    local names = call('HGET', job, 'lost_by')
    names = names and (names .. ', ' .. worker) or worker
    call('HSET', job, 'attempts', attempt, 'lost_by', names, 'status', 'queued', 'worker_name', '')
    if tonumber(attempt) >= tonumber(ARGV[2]) then
      fail_as_lost(id, job, tonumber(attempt), names)
      failed = failed + 1
    else
      call('LPUSH', KEYS[3], id)
      call('HINCRBY', KEYS[5], 'requeued', 1)
      requeued = requeued + 1
    end
  end
end

for _, worker in ipairs(call('ZRANGEBYSCORE', KEYS[2], '-inf', micros(now), 'LIMIT', 0, 200)) do
  -- moved to the worker, never taken: the connection broke between the two halves of a packet
  while call('LMOVE', 'scaletest:taking:' .. worker, KEYS[3], 'RIGHT', 'LEFT') do end
  call('ZREM', KEYS[2], worker)
  call('SREM', 'scaletest:suspects:' .. ARGV[1], worker)
  call('SREM', KEYS[6], 'rq:worker:' .. worker)
  call('SREM', 'rq:workers', 'rq:worker:' .. worker)
  call('DEL', 'rq:worker:' .. worker)
end

for _, client in ipairs(call('ZRANGEBYSCORE', 'scaletest:clients', '-inf', micros(now - 600000000), 'LIMIT', 0, 200)) do
  call('ZREM', 'scaletest:clients', client)
  call('DEL', 'scaletest:client:' .. client, 'scaletest:replies:' .. client)
end
return {requeued, failed}
