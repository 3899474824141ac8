-- Let a request that failed run again, when it has retries left; whether it does. It waits as RQ's
-- Job.retry lets a job wait: in the queue, or in the registry of RQ's scheduler. The attempt that
-- failed is counted as ended, and the next one as submitted when it is taken.
-- clock_s: the worker's, by which RQ's schedulers go. failure: the fields of the reply.
local function retry(name, queue, id, attempt, clock_s, failure)
  local job = JOB .. id
  local row = redis.call('HMGET', job, 'retries_left', 'retry_intervals')
  local left = tonumber(row[1] or '') or 0
  -- what cannot be read stays so, and who stopped a request does not want it to run
  if left < 1 or failure.reason == 'poison' or failure.reason == 'stopped' then return false end
  local well, intervals = pcall(cjson.decode, row[2] or '[]')
  local delay = 0
  if well and type(intervals) == 'table' then
    delay = tonumber(intervals[math.max(#intervals - left, 0) + 1]) or 0
  end
  redis.call('HSET', job, 'retries_left', left - 1, 'attempts', attempt, 'tried', attempt,
    'booked', 'retry', 'enqueued_us', micros(now + delay * 1e6), 'worker_name', '',
    'status', delay > 0 and 'scheduled' or 'queued')
  if delay > 0 then
    redis.call('ZADD', SCHEDULED .. name, clock_s + delay, id)
  else
    redis.call('RPUSH', queue, id)
  end
  return true
end
