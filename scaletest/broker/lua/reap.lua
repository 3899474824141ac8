-- Take back requests of dead workers and of interrupted moves, and forget dead workers and clients, so many of each per
-- call. Any number of reapers may call it.
-- KEYS 1 leases  2 workers:<q>  3 rq:queue:<q>  4 rq:wip:<q>  5 counters  6 rq:workers:<q>  7 taking  8 samplers:<q>
-- ARGV 1 queue  2 attempts a request may take  3 interval in microseconds  4 how many of each
-- Answer: {requeued, failed, 1 when there may be more, microseconds until the next lease ends or nil}
--@include now
--@include reply
--@include stamp
--@include pulse
--@include put_back
--@include executions
local call = redis.call
local at = deadline_clock(tonumber(ARGV[3]))
local requeued, failed, more = 0, 0, 0

local function expired(key, until_us)
  local members = call('ZRANGEBYSCORE', key, '-inf', micros(until_us), 'LIMIT', 0, ARGV[4])
  if #members == tonumber(ARGV[4]) then more = 1 end
  return members
end

-- Requests that were moved and not taken: the connection broke between the move and the call that follows it, or that
-- call is still on its way, and then takes the request from the queue. So anybody may empty this list.
if put_back(KEYS[7], KEYS[3], tonumber(ARGV[4])) == tonumber(ARGV[4]) then more = 1 end

local function fail_as_lost(id, job, attempt, lost_by)
  local text = 'lost ' .. attempt .. ' times, by ' .. lost_by
  local client = call('HGET', job, 'reply_to')
  local enqueued = tonumber(call('HGET', job, 'enqueued_us') or now)
  local reply = cjson.encode({id = id, outcome = 'failed', reason = 'lost', error = text, attempts = attempt,
    enqueued_s = enqueued / 1e6, exit_code = cjson.null, wait_s = 0, run_s = 0})
  if client and send_reply(client, reply) then
    call('DEL', job)
  else
    call('HSET', job, 'status', 'failed', 'ended_at', stamp(now), 'booked', '1')
    call('ZADD', RQ .. 'failed:' .. ARGV[1], clock[1] + 31536000, id)
    call('XADD', RQ .. 'results:' .. id, 'MAXLEN', 10, '*', 'type', 2, 'exc_string', '', 'worker_name', lost_by)
    call('EXPIRE', RQ .. 'results:' .. id, 31536000)
  end
  call('HINCRBY', KEYS[5], 'failed', 1)
  call('HINCRBY', KEYS[5], 'lost', 1)
end

for _, member in ipairs(expired(KEYS[1], at)) do
  call('ZREM', KEYS[1], member)
  local id, attempt, worker = string.match(member, '^([^:]+):(%d+):(.+)$')
  local job = RQ .. 'job:' .. (id or '')
  if id then forget_executions(KEYS[4], RQ .. 'worker:' .. worker, id, attempt) end
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

-- A foreign key in place of the samplers must not stop the reaping.
local samplers = call('TYPE', KEYS[8]).ok == 'hash' and KEYS[8]
local function forget_sampler(node, worker)
  if samplers and type(node) == 'string' and call('HGET', samplers, node) == worker then call('HDEL', samplers, node) end
end

for _, worker in ipairs(expired(KEYS[2], at)) do
  call('ZREM', KEYS[2], worker)
  call('SREM', OWN .. 'suspects:' .. ARGV[1], worker)
  local hash = RQ .. 'worker:' .. worker
  forget_sampler(redis.pcall('HGET', hash, 'node'), worker)
  call('SREM', KEYS[6], hash)
  call('SREM', RQ .. 'workers', hash)
  call('DEL', hash, hash .. ':executions')
end

for _, client in ipairs(expired(OWN .. 'clients', at - 600000000)) do
  call('ZREM', OWN .. 'clients', client)
  call('UNLINK', OWN .. 'client:' .. client, OWN .. 'replies:' .. client)
end

-- Samplers of workers that were forgotten in other ways: a few at a time, since there may be very many.
local rows = samplers and call('HRANDFIELD', samplers, 10, 'WITHVALUES') or {}
for i = 1, #rows, 2 do
  if not call('ZSCORE', KEYS[2], rows[i + 1]) then call('HDEL', samplers, rows[i]) end
end
local first = call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return {requeued, failed, more, first[2] and math.max(0, tonumber(first[2]) - at) or false}
