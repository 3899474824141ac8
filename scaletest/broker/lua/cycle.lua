-- Finish a worker's last request and take its next, in one call.
-- KEYS 1 rq:worker:<worker>  2 leases  3 rq:queue:<q>  4 counters  5 ended  6 slots  7 paused
--      8 rq:suspended  9 taking  10 scaletest:pulse  11 scaletest:standstill
-- ARGV 1 call, larger as a string than any before
--      2 take: 0 no, 1 from the queue, 2 from the taking list first
--      3 heartbeat interval in microseconds  4 worker  5 queue
--      then, when a request is finished: 6 id  7 attempt  8 client  9 reply
--      10 started registry when a heartbeat showed the request in RQ's registries, else empty
--      11 the worker's deadline from an earlier answer, else empty
--      12-14 the numbers that count its outcome, wait and run (model/queue_counts.py)
--      15 wait  16 run, in microseconds
--      17 the worker's clock in seconds, when it did not succeed
-- Answer: {id, attempt, started, enqueued, client, data, deadline}, nil when there is nothing to
--         take, {'paused'}, {'again'} when there may be more, or {'overdue'} when the worker has to
--         beat before it can take anything. client and data are empty for a job that RQ's own code
--         must run; deadline is, when it was not looked up.
-- Safe to repeat: a call that was answered gets the same answer, and nothing happens twice. An
-- older call is refused.
-- A lease ends with the worker's deadline, which its heartbeats extend.
-- Functions that are needed seldom are included where they are: each one that a script defines
-- costs 0.05 us a call.
--@include now
--@include reply
--@include ended
local call = redis.call
local worker, leases, queue, counters, ended = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local slots, paused, suspended, taking = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local pulse_key, standstill_key = KEYS[10], KEYS[11]
local this_call, source, interval, name, queue_name = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local finished, attempt, client, reply = ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local registry, known_deadline = ARGV[10], ARGV[11]
local outcome, wait, run, waited_us, ran_us = ARGV[12], ARGV[13], ARGV[14], ARGV[15], ARGV[16]

local function rest(answer)
  call('HSET', worker, 'call', this_call, 'answer', answer, 'state', 'idle')
  return answer ~= '' and {answer} or false
end

-- A worker that still holds the lease of the request that it finishes has not made this call
-- before, nor a later one: nothing else need be read. It brings its deadline, which is looked up
-- about once an interval.
local lease = finished and finished .. ':' .. attempt .. ':' .. name
local first = finished and known_deadline ~= '' and call('ZREM', leases, lease) == 1
local deadline = known_deadline
if not first then
  local last = call('HMGET', worker, 'call', 'answer', 'until')
  deadline = last[3]
  if last[1] == this_call then
    -- The same call again: its connection broke after it was carried out.
    local id, attempt, started = string.match(last[2] or '', '^(.+):(%d+):(%d+)$')
    if not id then return last[2] ~= '' and {last[2]} or false end
    if not call('ZSCORE', leases, id .. ':' .. attempt .. ':' .. name) then
      -- The lease is lost. The worker takes another with a new call: this one may be a late copy,
      -- whose answer nobody reads.
      return rest('again')
    end
    local fields = call('HMGET', JOB .. id, 'reply_to', 'enqueued_us')
    local data = fields[1] and call('HGET', JOB .. id, 'data')
    return {id, attempt, started, fields[2] or '', fields[1] or '', data or '', deadline or ''}
  elseif last[1] and this_call < last[1] then
    return redis.error_reply('STALECALL an older call came late')
  end
end

if finished then
  local owned = first or call('ZREM', leases, lease) == 1
  if not owned then
--@include take_back
    -- The lease ran out. The result still counts when the request waits again and nobody took it.
    owned = take_back(queue, counters, finished) == 1
    if not owned then call('HINCRBY', counters, 'stale', '1') end
  end
  if owned then
    local runs_again = false
    if outcome == ENDED_FAILED or outcome == ENDED_TIMED_OUT then
--@include failure
--@include decoded
--@include retry
      local failure = decoded(reply)
      runs_again = retry(queue_name, queue, finished, attempt, tonumber(ARGV[17]), failure)
      keep_failure(FAILURES .. queue_name, failure, name)
    end
    if not runs_again then
      call('DEL', JOB .. finished)
      if not send_reply(client, reply) then call('HINCRBY', counters, 'undelivered', '1') end
    end
    count_ended(ended, slots, outcome, wait, run, waited_us, ran_us, reply)
  end
  if registry ~= '' then
--@include executions
    forget_executions(registry, worker, finished, attempt)
  end
end

local row = call('MGET', paused, suspended, pulse_key, standstill_key)
local is_paused = row[1] or row[2]
-- The clock of deadlines (pulse.lua), which only heartbeats set: after a gap it shows no more than
-- it may.
local pulse, standstill = tonumber(row[3] or '') or now, tonumber(row[4] or '') or 0
local at = pulse - standstill + math.max(0, math.min(now - pulse, interval / 4))

local left = first and deadline - at
if first and (left < 0.8 * interval or left > 2 * interval) then
  -- A heartbeat extended it since, or is missing, or Redis forgot some.
  first, deadline = false, call('HGET', worker, 'until')
end
local overdue = not deadline or tonumber(deadline) < at
if source == '2' and (overdue or is_paused) then
--@include put_back
  put_back(taking, queue, 100)
end
-- Whom reapers may forget at any time gets nothing, and whom they have forgotten no hash that would
-- stay for ever: it was frozen, or it is dead and its connection does not know.
if overdue then return deadline and rest('overdue') or {'overdue'} end
if source == '0' then return rest('') end
if is_paused then return rest('paused') end

-- Nobody works for the dead: a request that waited longer than a client may be silent is looked at
-- more closely. Where the clock was ever set, or Redis away, nobody knows how long it waited, and
-- every request is.
local function is_old(enqueued, time_to_live)
  local waited = now - enqueued
  return standstill ~= 0 or waited < 0 or waited > tonumber(time_to_live)
end
local function client_gone(client)
  local deadline = call('ZSCORE', CLIENTS, client)
  return not deadline or tonumber(deadline) < at
end

-- Bytes of data of one of our requests. Larger ones are RQ's to read: in a script each 16 MB take
-- 40 ms.
local MOST_DATA, MOST_RQ_DATA = 1048576, 67108864

-- Why a job cannot be executed, nil when it can: anybody may have written its fields.
local function fault(id, job, size)
  if job.err then return 'its key does not hold a job' end
  if not string.match(id, '^[%w_-]+$') or #id > 128 then return 'its id is not a job id' end
  if not job[1] and size == 0 then return 'it has no data' end
  if size > (job[2] and MOST_DATA or MOST_RQ_DATA) then
    return 'its data are too large: ' .. size .. ' bytes'
  end
  if job[2] and not string.match(job[2], '^[%w_-]+$') then
    return 'its client is not a client id'
  end
  if job[3] and (#job[3] > 17 or not string.match(job[3], '^%d+$')) then
    return 'its time is not a time'
  end
  if job[2] and not job[3] then return 'it has no time' end
  if job[4] and (#job[4] > 6 or not string.match(job[4], '^%d+$')) then
    return 'its attempts are not a number'
  end
  if job[5] and (#job[5] > 17 or not string.match(job[5], '^%d+$')) then
    return 'its client has no time to live'
  end
end

-- A waiting job's fields, and how many bytes of data it has. Those of a request, which its id tells
-- from a job of RQ's, came in one script and may be read in another.
local function read_job(id)
  local key, size = JOB .. id, nil
  if not string.match(id, '^%x+%-%d+$') then
    size = redis.pcall('HSTRLEN', key, 'data')
    if type(size) ~= 'number' then size = 0 end
  end
  local data = size and size > MOST_DATA and 'origin' or 'data'
  local job = redis.pcall('HMGET', key, data, 'reply_to', 'enqueued_us', 'attempts',
    'client_ttl_us', 'counted', 'booked')
  return job, size or #(job[1] or '')
end

-- The attempt that a job is taken for. It counts as submitted here when it is not a request of
-- ours.
local function begin(id, job)
  local again, attempt = job[7], (job[4] or 0) + 1
  if again or not (job[3] or job[6]) and attempt == 1 then
--@include arrived
    -- it was counted as ended, and is retried, or somebody requeued it from RQ's failed registry
    if again then call('HDEL', JOB .. id, 'booked') end
    if again and again ~= 'retry' then call('HDEL', JOB .. id, 'attempts', 'lost_by') end
    call('HINCRBY', counters, 'submitted', '1')
    arrived(slots, 1)
  end
  return again and again ~= 'retry' and '1' or tostring(attempt)
end

for _ = 1, 200 do
  local id = source == '2' and call('LPOP', taking) or call('LPOP', queue)
  if not id then return rest('') end
  local job, size = read_job(id)
  local wrong = fault(id, job, size)
  if wrong and not job.err and string.match(id, '^[%w_-]+$')
      and call('EXISTS', JOB .. id) == 0 then
    -- RQ deleted or expired the job and left its id in the list; RQ skips such ids, and so do we
    wrong = nil
  elseif wrong then
--@include stamp
--@include failure
--@include keep
    keep(queue_name, counters, id, wrong)
  elseif job[2] and job[5] and is_old(job[3], job[5]) and client_gone(job[2]) then
--@include gone
    drop(id, job[2], counters, job[7])
  else
    local attempt, started = begin(id, job), micros(now)
    call('ZADD', leases, deadline, id .. ':' .. attempt .. ':' .. name)
    call('HSET', worker, 'call', this_call, 'answer', id .. ':' .. attempt .. ':' .. started,
      'state', 'busy')
    return {id, attempt, started, job[3] or '', job[2] or '', job[2] and job[1] or '',
      first and '' or deadline}
  end
end
return rest('again')
