-- Extend the deadline of a worker and the lease of the request that it runs.
-- KEYS 1 rq:worker:<worker>  2 leases  3 workers:<q>  4 rq:wip:<q>  5 rq:workers  6 rq:workers:<q>  7 scaletest:queues
--      8 samplers:<q>  9 counters  10 reaps:<q>
-- ARGV 1 worker  2 lease in microseconds  3 id of the running request or ''  4 attempt  5 interval in microseconds
--      6 '1' when RQ's own code runs the request  7 the call that the worker waits for an answer to, or ''
--      8 lease of the request whose result that call delivers, or ''  9 queue  10 the node that it could sample, or ''
--      11 how often the worker comes, in microseconds  12 version of the details that were sent before, or ''
--      13 the version that they have with this call  then pairs of fields to write into the worker hash
-- Answer: {1 while the lease is held (or nothing runs) or 0 when it was lost, 1 when that call was answered, 1 when this
--         worker reaps the queue now, 1 when the worker hash has the version sent before}, and for the worker that samples its node the
--         answer of sampling.lua
--@include now
--@include stamp
--@include pulse
--@include turn
--@include sampling
--@include executions
local call = redis.call
local at = deadline_clock(tonumber(ARGV[5]))
local ends = micros(at + ARGV[2])
remember_interval(tonumber(ARGV[5]), ends)
call('ZADD', KEYS[3], ends, ARGV[1])
call('SADD', KEYS[5], KEYS[1])
call('SADD', KEYS[6], KEYS[1])
local known = ARGV[12] ~= '' and call('HGET', KEYS[1], 'details_version') == ARGV[12] and 1 or 0
call('HSET', KEYS[1], 'last_heartbeat', stamp(now), 'until', ends, 'details_version', ARGV[13], unpack(ARGV, 14))
-- RQ set a time to live, which a step of the clock would end. A reaper deletes the hash.
call('PERSIST', KEYS[1])
local answered = ARGV[7] ~= '' and call('HGET', KEYS[1], 'call') == ARGV[7] and 1 or 0
if ARGV[8] ~= '' then call('ZADD', KEYS[2], 'XX', ends, ARGV[8]) end
local sampled = sampling(KEYS[7], KEYS[8], KEYS[3], KEYS[2], KEYS[9], ARGV[9], ARGV[10], ARGV[1], at)
local turn = takes_turn(KEYS[10], KEYS[2], tonumber(ARGV[11]), at) and 1 or 0
local function answer_with(owned) return {owned, answered, turn, known, unpack(sampled)} end
if ARGV[3] == '' then return answer_with(1) end
local member = ARGV[3] .. ':' .. ARGV[4] .. ':' .. ARGV[1]
if not call('ZSCORE', KEYS[2], member) then return answer_with(0) end
call('ZADD', KEYS[2], ends, member)
-- A request that runs at a heartbeat is shown to RQ's tools. Its score is far later than our lease, so that stock
-- maintenance, which fails expired entries when it merely counts them, never acts before our reaper.
if ARGV[6] == '1' then
  -- RQ's own code keeps its registries itself, under an execution id of its own; they only must not expire
  for _, execution in ipairs(call('ZRANGE', RQ .. 'executions:' .. ARGV[3], 0, -1)) do
    call('ZADD', KEYS[4], 'XX', clock[1] + 31536000, ARGV[3] .. ':' .. execution)
    call('EXPIRE', RQ .. 'execution:' .. ARGV[3] .. ':' .. execution, 660)
    call('EXPIRE', RQ .. 'executions:' .. ARGV[3], 660)
  end
  return answer_with(1)
end
show_execution(KEYS[4], KEYS[1], ARGV[1], ARGV[3], ARGV[4])
local job = RQ .. 'job:' .. ARGV[3]
local status = call('HGET', job, 'status')
if status == 'queued' then
  local started = tonumber(string.match(call('HGET', KEYS[1], 'answer') or '', ':(%d+)$') or now)
  call('HSET', job, 'status', 'started', 'worker_name', ARGV[1], 'started_at', stamp(started))
end
if status then call('HSET', job, 'last_heartbeat', stamp(now)) end
return answer_with(1)
