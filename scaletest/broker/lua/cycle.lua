-- Finish the last request and take the next: a worker's whole conversation with Redis, in one call.
-- KEYS 1 rq:worker:<worker>  2 leases  3 rq:queue:<q>  4 counters  5 wait  6 run  7 paused  8 rq:suspended
--      9 taking  10 scaletest:pulse  11 scaletest:standstill
-- ARGV 1 call, larger as a string than any before  2 take: 0 no, 1 from the queue, 2 from the taking list first
--      3 heartbeat interval in microseconds  4 worker
--      then, when a request is finished: 5 id  6 attempt  7 outcome  8 wait bucket  9 run bucket  10 client
--      11 reply  12 started registry when a heartbeat showed the request in RQ's registries, else empty
-- Answer: {id, attempt, started, enqueued, client, data}, nil when there is nothing to take, {'paused'}, {'again'} when
--         there may be more, or {'overdue'} when the worker has to beat before it can take anything. client and data are
--         empty for a job that RQ's own code must run.
-- Safe to repeat: a call that was answered gets the same answer, and nothing happens twice. An older call is refused.
-- A lease ends with the worker's deadline, which its heartbeats extend.
--@include now
--@include stamp
--@include keep
--@include take_back
--@include put_back
--@include slots
--@include executions
local call = redis.call
local worker, leases, queue, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local name = string.sub(queue, #RQ + 7)

local function rest(answer)
  call('HSET', worker, 'call', ARGV[1], 'answer', answer, 'state', 'idle')
  return answer ~= '' and {answer} or false
end

local last = call('HMGET', worker, 'call', 'answer', 'until')
if last[1] == ARGV[1] then
  -- The same call again: its connection broke after it was carried out.
  local id, attempt, started = string.match(last[2] or '', '^(.+):(%d+):(%d+)$')
  if not id then return last[2] ~= '' and {last[2]} or false end
  if not call('ZSCORE', leases, id .. ':' .. attempt .. ':' .. ARGV[4]) then
    -- Not its own any more. It takes another with a new call: this one may be a late copy, whose answer nobody reads.
    return rest('again')
  end
  local job = call('HMGET', RQ .. 'job:' .. id, 'reply_to', 'enqueued_us')
  return {id, attempt, started, job[2] or '', job[1] or '', job[1] and call('HGET', RQ .. 'job:' .. id, 'data') or ''}
elseif last[1] and ARGV[1] < last[1] then
  return redis.error_reply('STALECALL an older call came late')
end

local finished = ARGV[5]
if finished then
  local owned = call('ZREM', leases, finished .. ':' .. ARGV[6] .. ':' .. ARGV[4])
  if owned == 0 then
    -- The lease ran out. The result still counts when the request waits again and nobody took it.
    owned = take_back(queue, finished)
    if owned == 0 then call('HINCRBY', counters, 'stale', 1) end
  end
  if owned == 1 then
    call('DEL', RQ .. 'job:' .. finished)
    if not call('XADD', OWN .. 'replies:' .. ARGV[10], 'NOMKSTREAM', '*', 'r', ARGV[11], 'e', micros(now)) then
      call('HINCRBY', counters, 'undelivered', 1)
    end
    call('HINCRBY', counters, ARGV[7], 1)
    call('HINCRBY', KEYS[5], ARGV[8], 1)
    call('HINCRBY', KEYS[6], ARGV[9], 1)
    ended(name, ARGV[8], ARGV[9], ARGV[11])
  end
  if ARGV[12] ~= '' then forget_executions(ARGV[12], worker, finished, ARGV[6]) end
end

local row = call('MGET', KEYS[7], KEYS[8], KEYS[10], KEYS[11])
-- The clock of deadlines (pulse.lua), which only heartbeats set: after a gap it shows no more than it may.
local pulse, standstill = tonumber(row[3] or '') or now, tonumber(row[4] or '') or 0
local at = pulse - standstill + math.max(0, math.min(now - pulse, ARGV[3] / 4))

local overdue = not last[3] or tonumber(last[3]) < at
if ARGV[2] == '2' and (overdue or row[1] or row[2]) then put_back(KEYS[9], queue, 100) end
-- Whom reapers may forget at any time gets nothing, and whom they have forgotten no hash that would stay for ever: it
-- was frozen, or it is dead and its connection does not know.
if overdue then return last[3] and rest('overdue') or {'overdue'} end
if ARGV[2] == '0' then return rest('') end
if row[1] or row[2] then return rest('paused') end

-- Nobody works for the dead: a request that waited longer than a client may be silent is looked at more closely. Where
-- the clock was ever set, or Redis away, nobody knows how long it waited, and every request is.
local function is_old(job)
  local waited = now - job[3]
  return standstill ~= 0 or waited < 0 or waited > tonumber(job[5])
end
local function client_gone(client)
  local deadline = call('ZSCORE', OWN .. 'clients', client)
  return not deadline or tonumber(deadline) < at
end

--@include gone

-- Bytes of data of one of our requests. Larger ones are RQ's to read: in a script each 16 MB take 40 ms.
local MOST_DATA = 1048576

-- What is wrong with a job's fields, all of which anybody may have written; nil when nothing is.
local function fault(id, job, size)
  if job.err then return 'what lies under its key is no job' end
  if not string.match(id, '^[%w_-]+$') or #id > 128 then return 'its id is not one of a job' end
  if not job[1] and size == 0 then return 'it has no data' end
  if size > (job[2] and MOST_DATA or 67108864) then return 'its data are too large: ' .. size .. ' bytes' end
  if job[2] and not string.match(job[2], '^[%w_-]+$') then return 'its client is not one' end
  if job[3] and (#job[3] > 17 or not string.match(job[3], '^%d+$')) then return 'its time is not one' end
  if job[2] and not job[3] then return 'it has no time' end
  if job[4] and (#job[4] > 6 or not string.match(job[4], '^%d+$')) then return 'its attempts are no number' end
  if job[5] and (#job[5] > 17 or not string.match(job[5], '^%d+$')) then return 'its client has no time to live' end
end

for _ = 1, 200 do
  local id = ARGV[2] == '2' and call('LPOP', KEYS[9]) or call('LPOP', queue)
  if not id then return rest('') end
  local size = redis.pcall('HSTRLEN', RQ .. 'job:' .. id, 'data')
  if type(size) ~= 'number' then size = 0 end
  local job = redis.pcall('HMGET', RQ .. 'job:' .. id, size > MOST_DATA and 'origin' or 'data', 'reply_to', 'enqueued_us',
    'attempts', 'client_ttl_us', 'counted', 'booked')
  local wrong = fault(id, job, size)
  if wrong and not job.err and string.match(id, '^[%w_-]+$') and call('EXISTS', RQ .. 'job:' .. id) == 0 then
    wrong = nil -- RQ deleted or expired the job and left its id in the list; RQ skips such ids, and so do we
  elseif wrong then
    keep(name, counters, id, wrong)
  elseif job[2] and job[5] and is_old(job) and client_gone(job[2]) then
    drop(id, job[2], counters, job[7])
  else
    local attempt = (job[4] or 0) + 1
    if job[7] then
      -- it had an end in the books, and somebody requeued it from RQ's failed registry
      call('HDEL', RQ .. 'job:' .. id, 'booked', 'attempts', 'lost_by')
      call('HINCRBY', counters, 'submitted', 1)
      arrived(name, 1)
      attempt = 1
    elseif not job[3] and not job[6] and attempt == 1 then
      call('HINCRBY', counters, 'submitted', 1)
      arrived(name, 1)
    end
    local started = micros(now)
    call('ZADD', leases, last[3], id .. ':' .. attempt .. ':' .. ARGV[4])
    call('HSET', worker, 'call', ARGV[1], 'answer', id .. ':' .. attempt .. ':' .. started, 'state', 'busy')
    return {id, tostring(attempt), started, job[3] or '', job[2] or '', job[2] and job[1] or ''}
  end
end
return rest('again')
