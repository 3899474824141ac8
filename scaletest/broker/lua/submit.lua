-- Enqueue requests, all in one call. Safe to repeat: the same call gets the same answer; an older
-- one is refused.
-- KEYS 1 scaletest:queues  2 rq:queues  3 rq:queue:<q>  4 counters  5 client:<id>  6 slots
--      7 rq:scheduled:<q>  8 rq:scheduler-lock:<q>
-- ARGV 1 queue  2 client  3 call, larger as a string than any before
--      4 client's time to live in microseconds  5 '1' when replies are wanted
--      6 result time to live in seconds  7 delay in seconds  8 the client's clock in seconds
--      9 retries  10 their intervals as RQ writes them  then for each request: id, data, RQ timeout
-- Answer: {accepted, maximum, 1 when RQ's scheduler works} (those beyond the maximum are rejected
--         and counted; delayed ones are never), or nil for an undeclared queue, {-1, 0} for one whose entry cannot be read. An error that begins with
--         OOM, and nothing done, when nine tenths of maxmemory are in use.
--@include now
--@include stamp
--@include arrived
local call = redis.call
local queues, rq_queues, queue, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local client_calls, slots, scheduled, lock = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local name, client, this_call, time_to_live = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local wants_replies, result_ttl = ARGV[5] == '1', ARGV[6]
local delay, clock_s, retries, intervals = tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9], ARGV[10]
-- Where the first request stands in ARGV, and how many arguments each has.
local FIRST, EACH = 11, 3

local last = call('HMGET', client_calls, 'call', 'answer', 'maximum')
if last[1] == this_call then return {tonumber(last[2]), tonumber(last[3]), 1} end
if last[1] and this_call < last[1] then
  return redis.error_reply('STALECALL an older call came late')
end

-- The last tenth belongs to the workers: one that starts has to register, and writes replies,
-- before it makes room. A Redis that submissions filled completely would never be emptied again.
local function is_crowded()
  local info = redis.pcall('INFO', 'memory')
  -- where INFO is forbidden maxmemory itself is the limit
  if type(info) ~= 'string' then return false end
  local used = string.match(info, 'used_memory:(%d+)')
  local maximum = string.match(info, 'maxmemory:(%d+)')
  return used and maximum and tonumber(maximum) > 0 and tonumber(used) > 0.9 * tonumber(maximum)
end
if is_crowded() then return redis.error_reply('OOM nine tenths of maxmemory are in use') end

local declared = call('HGET', queues, name)
if not declared then return false end
local well, entry = pcall(cjson.decode, declared)
local maximum = well and type(entry) == 'table' and tonumber(entry.maximum or 0)
if not maximum then return {-1, 0} end -- somebody else wrote the entry
local count = (#ARGV - FIRST + 1) / EACH
local accepted = count
if maximum > 0 and delay == 0 then
  accepted = math.max(0, math.min(count, maximum - call('LLEN', queue)))
end

local at, us = stamp(now), micros(now + delay * 1e6)
for i = 0, accepted - 1 do
  local place = FIRST + EACH * i
  local id, data, timeout = ARGV[place], ARGV[place + 1], ARGV[place + 2]
  if wants_replies then
    call('HSET', JOB .. id, 'data', data, 'origin', name, 'status', 'queued', 'created_at', at,
      'enqueued_at', at, 'timeout', timeout, 'result_ttl', '0', 'enqueued_us', us,
      'reply_to', client, 'client_ttl_us', time_to_live)
  else
    call('HSET', JOB .. id, 'data', data, 'origin', name, 'status', 'queued', 'created_at', at,
      'enqueued_at', at, 'timeout', timeout, 'result_ttl', result_ttl, 'failure_ttl', result_ttl,
      'enqueued_us', us)
  end
  if retries ~= '0' then
    call('HSET', JOB .. id, 'retries_left', retries, 'retry_intervals', intervals)
  end
  if delay == 0 then
    call('RPUSH', queue, id)
  else
    -- a job of RQ's scheduler, which counts as submitted when it is taken
    call('HSET', JOB .. id, 'status', 'scheduled', 'booked', 'retry')
    call('ZADD', scheduled, clock_s + delay, id)
  end
end
if accepted > 0 and delay == 0 then
  call('SADD', rq_queues, queue)
  call('HINCRBY', counters, 'submitted', accepted)
  arrived(slots, accepted)
end
if accepted < count then call('HINCRBY', counters, 'rejected', count - accepted) end
call('HSET', client_calls, 'call', this_call, 'answer', accepted, 'maximum', maximum)
return {accepted, maximum, call('EXISTS', lock)}
