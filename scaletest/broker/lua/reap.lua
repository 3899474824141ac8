-- Take back requests of dead workers and of interrupted moves, and forget dead workers and clients,
-- so many of each per call. Any number of reapers may call it.
-- KEYS 1 leases  2 workers:<q>  3 rq:queue:<q>  4 rq:wip:<q>  5 counters  6 rq:workers:<q>
--      7 taking  8 samplers:<q>
-- ARGV 1 queue  2 attempts a request may take  3 interval in microseconds  4 how many of each
-- Answer: {requeued, failed, 1 when there may be more, microseconds until the next lease ends or
--         nil}
--@include now
--@include reply
--@include stamp
--@include pulse
--@include put_back
--@include executions
--@include failure
local call = redis.call
local leases, workers, queue, started, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local queue_workers, taking, samplers = KEYS[6], KEYS[7], KEYS[8]
local name, most_attempts = ARGV[1], tonumber(ARGV[2])
local interval, batch = tonumber(ARGV[3]), tonumber(ARGV[4])
local CLIENT_SILENT_US = 600000000
local at = deadline_clock(interval)
local requeued, failed, more = 0, 0, 0

local function expired(key, until_us)
  local members = call('ZRANGEBYSCORE', key, '-inf', micros(until_us), 'LIMIT', 0, batch)
  if #members == batch then more = 1 end
  return members
end

-- Requests that were moved and not taken: the connection broke between the move and the call that
-- follows it, or that call is still on its way, and then takes the request from the queue. So
-- anybody may empty this list.
if put_back(taking, queue, batch) == batch then more = 1 end

local function fail_as_lost(id, job, attempt, worker, lost_by)
  local text = 'lost ' .. attempt .. ' times, by ' .. lost_by
  local client = call('HGET', job, 'reply_to')
  local enqueued = tonumber(call('HGET', job, 'enqueued_us') or now)
  local reply = {id = id, outcome = 'failed', reason = 'lost', error = text,
    attempts = attempt, enqueued_s = enqueued / 1e6, exit_code = cjson.null, wait_s = 0, run_s = 0}
  if client and send_reply(client, cjson.encode(reply)) then
    call('DEL', job)
  else
    local results = RESULTS .. id
    call('HSET', job, 'status', 'failed', 'ended_at', stamp(now), 'booked', '1')
    call('ZADD', FAILED .. name, clock[1] + YEAR, id)
    call('XADD', results, 'MAXLEN', 10, '*', 'type', 2, 'exc_string', '', 'worker_name', lost_by)
    call('EXPIRE', results, YEAR)
  end
  call('HINCRBY', counters, 'failed', 1)
  call('HINCRBY', counters, 'lost', 1)
  keep_failure(FAILURES .. name, reply, worker)
end

-- How RQ ended a job whose worker died before it counted that, nil when RQ did not: it runs again
-- when RQ's scheduler, a retry or somebody enqueues it, and not because its lease ran out.
local ENDS = {finished = 'succeeded', failed = 'failed', stopped = 'failed', scheduled = 'failed'}
local function end_by_rq(id, job)
  local status = call('HGET', job, 'status')
  if status == 'queued' and call('LPOS', queue, id, 'RANK', '-1', 'MAXLEN', '50000') then
    return 'failed' -- RQ retries it at once
  end
  return ENDS[status or '']
end

for _, member in ipairs(expired(leases, at)) do
  call('ZREM', leases, member)
  local id, attempt, worker = string.match(member, '^([^:]+):(%d+):(.+)$')
  local job = JOB .. (id or '')
  if id then forget_executions(started, WORKER .. worker, id, attempt) end
  local rq_end = id and end_by_rq(id, job)
  if rq_end then
    call('HINCRBY', counters, rq_end, 1)
    if call('HEXISTS', job, 'enqueued_us') == 0 then
      call('HDEL', job, 'attempts', 'lost_by', 'counted')
    end
  elseif id and call('EXISTS', job) == 1 then
    local lost_by = call('HGET', job, 'lost_by')
    lost_by = lost_by and (lost_by .. ', ' .. worker) or worker
    call('HSET', job, 'attempts', attempt, 'lost_by', lost_by, 'status', 'queued',
      'worker_name', '')
    call('HDEL', job, 'booked')
    local tried = tonumber(call('HGET', job, 'tried') or '') or 0 -- attempts that failed
    if attempt - tried >= most_attempts then
      fail_as_lost(id, job, tonumber(attempt), worker, lost_by)
      failed = failed + 1
    else
      call('LPUSH', queue, id)
      call('HINCRBY', counters, 'requeued', 1)
      requeued = requeued + 1
    end
  end
end

-- A foreign key in place of the samplers must not stop the reaping.
samplers = call('TYPE', samplers).ok == 'hash' and samplers
local function forget_sampler(node, worker)
  if not samplers or type(node) ~= 'string' then return end
  if call('HGET', samplers, node) == worker then call('HDEL', samplers, node) end
end

for _, worker in ipairs(expired(workers, at)) do
  call('ZREM', workers, worker)
  call('SREM', SUSPECTS .. name, worker)
  local hash = WORKER .. worker
  forget_sampler(redis.pcall('HGET', hash, 'node'), worker)
  call('SREM', queue_workers, hash)
  call('SREM', WORKERS, hash)
  call('DEL', hash, executions_of(hash))
end

for _, client in ipairs(expired(CLIENTS, at - CLIENT_SILENT_US)) do
  call('ZREM', CLIENTS, client)
  call('UNLINK', CLIENT .. client, REPLIES .. client)
end

-- Samplers of workers that were forgotten in other ways: a few at a time, since there may be very
-- many.
local rows = samplers and call('HRANDFIELD', samplers, 10, 'WITHVALUES') or {}
for i = 1, #rows, 2 do
  if not call('ZSCORE', workers, rows[i + 1]) then call('HDEL', samplers, rows[i]) end
end
local first = call('ZRANGE', leases, 0, 0, 'WITHSCORES')
return {requeued, failed, more, first[2] and math.max(0, tonumber(first[2]) - at) or false}
