-- Extend the deadline of a worker and the lease of the request that it runs.
-- KEYS 1 rq:worker:<worker>  2 leases  3 workers:<q>  4 rq:wip:<q>  5 rq:workers  6 rq:workers:<q>
--      7 scaletest:queues  8 samplers:<q>  9 counters  10 reaps:<q>
-- ARGV 1 worker  2 lease in microseconds  3 id of the running request or ''  4 attempt
--      5 heartbeat interval in microseconds  6 '1' when RQ's own code runs the request
--      7 lease of the request whose result is on its way, or ''  8 queue
--      9 the node that it could sample, or ''  10 how often the worker comes, in microseconds
--      then pairs of fields to write into the worker hash
-- Answer: {1 while the lease is held (or nothing runs) or 0 when it was lost, 1 when this worker
--         reaps the queue now}, and for the worker that samples its node the answer of sampling.lua
--@include now
--@include stamp
--@include pulse
--@include turn
--@include sampling
--@include executions
local call = redis.call
local worker, leases, workers, started, all_workers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local queue_workers, queues, samplers = KEYS[6], KEYS[7], KEYS[8]
local counters, reaps = KEYS[9], KEYS[10]
local name, lease_us, id, attempt, interval = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local by_rq, delivered, queue = ARGV[6] == '1', ARGV[7], ARGV[8]
local node, tick = ARGV[9], tonumber(ARGV[10])

local at = deadline_clock(interval)
local ends = micros(at + lease_us)
remember_interval(interval, ends)
call('ZADD', workers, ends, name)
call('SADD', all_workers, worker)
call('SADD', queue_workers, worker)
call('HSET', worker, 'last_heartbeat', stamp(now), 'until', ends, unpack(ARGV, 11))
-- RQ set a time to live, which a step of the clock would end. A reaper deletes the hash.
call('PERSIST', worker)
if delivered ~= '' then call('ZADD', leases, 'XX', ends, delivered) end
local sampled = sampling(queues, samplers, workers, leases, counters, queue, node, name, at)
local turn = takes_turn(reaps, leases, tick, at) and 1 or 0

local function answer_with(owned) return {owned, turn, unpack(sampled)} end

if id == '' then return answer_with(1) end
local lease = id .. ':' .. attempt .. ':' .. name
if not call('ZSCORE', leases, lease) then return answer_with(0) end
call('ZADD', leases, ends, lease)
-- A request that runs at a heartbeat is shown to RQ's tools. Its score is far later than our lease,
-- so that stock maintenance, which fails expired entries when it merely counts them, never acts
-- before our reaper.
if by_rq then
  keep_executions(started, id)
  return answer_with(1)
end
show_execution(started, worker, name, id, attempt)
local job = JOB .. id
local status = call('HGET', job, 'status')
if status == 'queued' then
  local taken = tonumber(string.match(call('HGET', worker, 'answer') or '', ':(%d+)$') or now)
  call('HSET', job, 'status', 'started', 'worker_name', name, 'started_at', stamp(taken))
end
if status then call('HSET', job, 'last_heartbeat', stamp(now)) end
return answer_with(1)
