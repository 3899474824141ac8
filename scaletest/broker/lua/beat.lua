-- Extend the deadline of a worker and the lease of the request that it runs.
-- KEYS 1 rq:worker:<worker>  2 leases  3 workers:<q>  4 rq:wip:<q>  5 rq:workers  6 rq:workers:<q>
--      7 scaletest:queues  8 samplers:<q>  9 counters  10 reaps:<q>
-- ARGV 1 worker  2 lease in microseconds  3 id of the running request or ''  4 attempt
--      5 heartbeat interval in microseconds  6 '1' when RQ's own code runs the request
--      7 the call that the worker waits for an answer to, or ''
--      8 lease of the request whose result that call delivers, or ''  9 queue
--      10 the node that it could sample, or ''  11 how often the worker comes, in microseconds
--      12 version of the details that were sent before, or ''  13 the version that they have with
--      this call  then pairs of fields to write into the worker hash
-- Answer: {1 while the lease is held (or nothing runs) or 0 when it was lost, 1 when that call was
--         answered, 1 when this worker reaps the queue now, 1 when the worker hash has the version
--         sent before}, and for the worker that samples its node the answer of sampling.lua
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
local is_slow, pending_call, delivered, queue = ARGV[6] == '1', ARGV[7], ARGV[8], ARGV[9]
local node, tick, version, next_version = ARGV[10], tonumber(ARGV[11]), ARGV[12], ARGV[13]

local at = deadline_clock(interval)
local ends = micros(at + lease_us)
remember_interval(interval, ends)
call('ZADD', workers, ends, name)
call('SADD', all_workers, worker)
call('SADD', queue_workers, worker)
local known = version ~= '' and call('HGET', worker, 'details_version') == version and 1 or 0
call('HSET', worker, 'last_heartbeat', stamp(now), 'until', ends, 'details_version', next_version,
  unpack(ARGV, 14))
-- RQ set a time to live, which a step of the clock would end. A reaper deletes the hash.
call('PERSIST', worker)
local answered = pending_call ~= '' and call('HGET', worker, 'call') == pending_call and 1 or 0
if delivered ~= '' then call('ZADD', leases, 'XX', ends, delivered) end
local sampled = sampling(queues, samplers, workers, leases, counters, queue, node, name, at)
local turn = takes_turn(reaps, leases, tick, at) and 1 or 0

local function answer_with(owned) return {owned, answered, turn, known, unpack(sampled)} end

if id == '' then return answer_with(1) end
local lease = id .. ':' .. attempt .. ':' .. name
if not call('ZSCORE', leases, lease) then return answer_with(0) end
call('ZADD', leases, ends, lease)
-- A request that runs at a heartbeat is shown to RQ's tools. Its score is far later than our lease,
-- so that stock maintenance, which fails expired entries when it merely counts them, never acts
-- before our reaper.
if is_slow then
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
