-- Finish the last request and take the next: a worker's whole conversation with Redis, in one call.
-- KEYS 1 rq:worker:<worker>  2 leases  3 rq:queue:<q>  4 counters  5 wait  6 run  7 paused  8 rq:suspended
--      9 taking:<worker>
-- ARGV 1 call, larger as a string than any before  2 take: 0 no, 1 from the queue, 2 from the taking list first
--      3 lease in microseconds  4 worker
--      then, when a request is finished: 5 id  6 attempt  7 outcome  8 wait bucket  9 run bucket  10 client
--      11 reply  12 started registry when a heartbeat entered the request there, else empty
-- Answer: {id, attempt, started, enqueued, client, data}, nil when there is nothing to take, {'paused'}, or {'again'}
--         when many entries were skipped and there may be more. client and data are empty for a job that RQ's own
--         code must run.
-- Safe to repeat: a call that was answered gets the same answer, and nothing happens twice. An older call is refused.
--@include now
--@include stamp
--@include keep
--@include slots
local call = redis.call
local worker, leases, queue, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local name = string.sub(queue, 10)

local last = call('HMGET', worker, 'call', 'answer')
if last[1] == ARGV[1] then
  -- The same call again: its connection broke after it was carried out.
  local id, attempt, started = string.match(last[2] or '', '^(.+):(%d+):(%d+)$')
  if not id then return last[2] ~= '' and {last[2]} or false end
  local job = call('HMGET', 'rq:job:' .. id, 'data', 'reply_to', 'enqueued_us')
  return {id, attempt, started, job[3] or '', job[2] or '', job[2] and job[1] or ''}
elseif last[1] and ARGV[1] < last[1] then
  return redis.error_reply('STALECALL an older call came late')
end

local finished = ARGV[5]
if finished then
  local owned = call('ZREM', leases, finished .. ':' .. ARGV[6] .. ':' .. ARGV[4])
  if owned == 0 then
    -- The lease ran out. The result still counts when the request waits again and nobody took it.
    owned = call('LREM', queue, 1, finished)
    if owned == 0 then call('HINCRBY', counters, 'stale', 1) end
  end
  if owned == 1 then
    call('DEL', 'rq:job:' .. finished)
    if not call('XADD', 'scaletest:replies:' .. ARGV[10], 'NOMKSTREAM', '*', 'r', ARGV[11], 'e', micros(now)) then
      call('HINCRBY', counters, 'undelivered', 1)
    end
    call('HINCRBY', counters, ARGV[7], 1)
    call('HINCRBY', KEYS[5], ARGV[8], 1)
    call('HINCRBY', KEYS[6], ARGV[9], 1)
    ended(name, ARGV[8], ARGV[9], ARGV[11])
  end
  if ARGV[12] ~= '' then call('ZREM', ARGV[12], finished .. ':' .. ARGV[6]) end
end

local function rest(answer)
  call('HSET', worker, 'call', ARGV[1], 'answer', answer, 'state', 'idle')
  call('HDEL', worker, 'current_job')
  return answer ~= '' and {answer} or false
end

if ARGV[2] == '0' then return rest('') end
if call('EXISTS', KEYS[7], KEYS[8]) > 0 then
  while ARGV[2] == '2' and call('LMOVE', KEYS[9], queue, 'RIGHT', 'LEFT') do end
  return rest('paused')
end

-- Nobody works for the dead: a request that waited longer than a client may be silent is looked at more closely.
local function client_gone(client)
  local deadline = call('ZSCORE', 'scaletest:clients', client)
  if deadline and tonumber(deadline) >= now then return false end
  -- After an outage the deadlines are wrong until a heartbeat has moved them on.
  local pulse = tonumber(call('GET', 'scaletest:pulse') or '0')
  return now - pulse < tonumber(ARGV[3])
end

local function drop(id, client)
  call('DEL', 'rq:job:' .. id)
  call('HINCRBY', counters, 'client_gone', 1)
  -- it may only have been frozen
  local reply = cjson.encode({id = id, outcome = 'client_gone', error = 'its client was silent for too long',
    exit_code = cjson.null, wait_s = 0, run_s = 0})
  call('XADD', 'scaletest:replies:' .. client, 'NOMKSTREAM', '*', 'r', reply, 'e', micros(now))
end

-- What is wrong with a job's fields, all of which anybody may have written; nil when nothing is.
local function fault(id, job)
  if job.err then return 'what lies under its key is no job' end
  if not string.match(id, '^[%w_-]+$') or #id > 128 then return 'its id is not one of a job' end
  if not job[1] then return 'it has no data' end
  if #job[1] > (job[2] and 1048576 or 67108864) then return 'its data are too large: ' .. #job[1] .. ' bytes' end
  if job[2] and not string.match(job[2], '^[%w_-]+$') then return 'its client is not one' end
  if job[3] and (#job[3] > 17 or not string.match(job[3], '^%d+$')) then return 'its time is not one' end
  if job[2] and not job[3] then return 'it has no time' end
  if job[4] and (#job[4] > 6 or not string.match(job[4], '^%d+$')) then return 'its attempts are no number' end
  if job[5] and (#job[5] > 17 or not string.match(job[5], '^%d+$')) then return 'its client has no time to live' end
end

for _ = 1, 1000 do
  local id = ARGV[2] == '2' and call('LPOP', KEYS[9]) or call('LPOP', queue)
  if not id then return rest('') end
  local job = redis.pcall('HMGET', 'rq:job:' .. id, 'data', 'reply_to', 'enqueued_us', 'attempts', 'client_ttl_us',
    'counted', 'booked')
  local wrong = fault(id, job)
  if wrong and not job.err and string.match(id, '^[%w_-]+$') and call('EXISTS', 'rq:job:' .. id) == 0 then
    wrong = nil -- RQ deleted or expired the job and left its id in the list; RQ skips such ids, and so do we
  elseif wrong then
    keep(name, counters, id, wrong)
  elseif job[2] and now - job[3] > tonumber(job[5] or '0') and job[5] and client_gone(job[2]) then
    drop(id, job[2])
  else
    local attempt = (job[4] or 0) + 1
    if job[7] then
      -- it had an end in the books, and somebody requeued it from RQ's failed registry
      call('HDEL', 'rq:job:' .. id, 'booked', 'attempts', 'lost_by')
      call('HINCRBY', counters, 'submitted', 1)
      arrived(name, 1)
      attempt = 1
    elseif not job[3] and not job[6] and attempt == 1 then
      call('HINCRBY', counters, 'submitted', 1)
      arrived(name, 1)
    end
    local started = micros(now)
    call('ZADD', leases, micros(now + ARGV[3]), id .. ':' .. attempt .. ':' .. ARGV[4])
    call('HSET', worker, 'call', ARGV[1], 'answer', id .. ':' .. attempt .. ':' .. started, 'current_job', id,
      'state', 'busy')
    return {id, tostring(attempt), started, job[3] or '', job[2] or '', job[2] and job[1] or ''}
  end
end
return rest('again')
