-- Finish the last request and take the next: a worker's whole conversation with Redis, in one call.
-- KEYS 1 rq:worker:<worker>  2 leases  3 rq:queue:<q>  4 counters  5 wait  6 run  7 paused  8 rq:suspended
--      9 taking:<worker>
-- ARGV 1 call number  2 take: 0 no, 1 from the queue, 2 from the taking list first  3 lease in microseconds  4 worker
--      then, when a request is finished: 5 id  6 attempt  7 outcome  8 wait bucket  9 run bucket  10 client
--      11 reply  12 started registry when a heartbeat entered the request there, else empty
-- Answer: {id, attempt, started, enqueued, client, data}, nil when there is nothing to take, or {'paused'}.
--         client is empty for a job that RQ's own code must run; data then too.
-- Safe to repeat: a call number that was answered gets the same answer, and nothing happens twice.
--@include now
local call = redis.call
local worker, leases, queue, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local function request(id, attempt, started)
  local job = call('HMGET', 'rq:job:' .. id, 'data', 'reply_to', 'enqueued_us')
  return {id, attempt, started, job[3] or '', job[2] or '', job[2] and job[1] or ''}
end

-- The same call again: its connection broke after it was carried out.
local last = call('HMGET', worker, 'call', 'answer')
if last[1] == ARGV[1] then
  local id, attempt, started = string.match(last[2] or '', '^(.+):(%d+):(%d+)$')
  if not id then return last[2] == 'paused' and {'paused'} or false end
  return request(id, attempt, started)
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
  end
  if ARGV[12] ~= '' then call('ZREM', ARGV[12], finished .. ':' .. ARGV[6]) end
end

local function rest(answer)
  call('HSET', worker, 'call', ARGV[1], 'answer', answer, 'state', 'idle')
  call('HDEL', worker, 'current_job')
end

if ARGV[2] == '0' then
  rest('')
  return false
end
if call('EXISTS', KEYS[7], KEYS[8]) > 0 then
  while ARGV[2] == '2' and call('LMOVE', KEYS[9], queue, 'RIGHT', 'LEFT') do end
  rest('paused')
  return {'paused'}
end

-- Nobody works for the dead: a request that waited longer than a client may be silent is looked at more closely.
local function client_gone(client, enqueued)
  local deadline = call('ZSCORE', 'scaletest:clients', client)
  if deadline and tonumber(deadline) >= now then return false end
  -- After an outage the deadlines are wrong until a heartbeat has moved them on.
  local pulse = tonumber(call('GET', 'scaletest:pulse') or '0')
  return now - pulse < tonumber(ARGV[3])
end

for _ = 1, 1000 do
  local id = ARGV[2] == '2' and call('LPOP', KEYS[9]) or call('LPOP', queue)
  if not id then break end
  local job = redis.pcall('HMGET', 'rq:job:' .. id, 'data', 'reply_to', 'enqueued_us', 'attempts', 'client_ttl_us')
  if job.err then
    -- Something that is no job sits under its key: never executed, kept for a look in RQ's failed registry.
    call('ZADD', 'rq:failed:' .. string.sub(queue, 10), 'NX', clock[1] + 31536000, id)
    call('HINCRBY', counters, 'foreign', 1)
  elseif job[1] then
    local ttl = tonumber(job[5] or '0')
    if job[2] and ttl > 0 and now - tonumber(job[3]) > ttl and client_gone(job[2], job[3]) then
      call('DEL', 'rq:job:' .. id)
      call('HINCRBY', counters, 'client_gone', 1)
    else
      local attempt = tonumber(job[4] or '0') + 1
      if not job[3] and attempt == 1 then call('HINCRBY', counters, 'submitted', 1) end
      local started = micros(now)
      call('ZADD', leases, micros(now + ARGV[3]), id .. ':' .. attempt .. ':' .. ARGV[4])
      call('HSET', worker, 'call', ARGV[1], 'answer', id .. ':' .. attempt .. ':' .. started, 'current_job', id,
        'state', 'busy')
      return {id, tostring(attempt), started, job[3] or '', job[2] or '', job[2] and job[1] or ''}
    end
  end
  -- else: RQ deleted or expired the job and left its id in the list; RQ skips such ids, and so do we
end
rest('')
return false
