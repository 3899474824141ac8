-- Enqueue requests, all in one call. Safe to repeat: the same call gets the same answer; an older one is refused.
-- KEYS 1 scaletest:queues  2 rq:queues  3 rq:queue:<q>  4 counters  5 client:<id>
-- ARGV 1 queue  2 client  3 call, larger as a string than any before  4 client's time to live in microseconds  5 '1' when replies are wanted
--      6 result time to live in seconds  then for each request: id, data, RQ timeout
-- Answer: {accepted, maximum} (those beyond the maximum are rejected and counted), or nil for an undeclared queue,
--         {-1, 0} for one whose entry cannot be read. An error that begins with OOM, and nothing done, when nine tenths
--         of maxmemory are in use.
--@include now
--@include stamp
--@include arrived
local call = redis.call
local last = call('HMGET', KEYS[5], 'call', 'answer', 'maximum')
if last[1] == ARGV[3] then return {tonumber(last[2]), tonumber(last[3])} end
if last[1] and ARGV[3] < last[1] then return redis.error_reply('STALECALL an older call came late') end

-- The last tenth belongs to the workers: one that starts has to register, and writes replies, before it makes room. A
-- Redis that submissions filled completely would never be emptied again.
local function is_crowded()
  local info = redis.pcall('INFO', 'memory')
  if type(info) ~= 'string' then return false end -- INFO is forbidden: maxmemory itself is the limit then
  local used, maximum = string.match(info, 'used_memory:(%d+)'), string.match(info, 'maxmemory:(%d+)')
  return used and maximum and tonumber(maximum) > 0 and tonumber(used) > 0.9 * tonumber(maximum)
end
if is_crowded() then return redis.error_reply('OOM nine tenths of maxmemory are in use') end

local declared = call('HGET', KEYS[1], ARGV[1])
if not declared then return false end
local well, entry = pcall(cjson.decode, declared)
local maximum = well and type(entry) == 'table' and tonumber(entry.maximum or 0)
if not maximum then return {-1, 0} end -- somebody else wrote the entry
local count = (#ARGV - 6) / 3
local accepted = count
if maximum > 0 then
  accepted = math.max(0, math.min(count, maximum - call('LLEN', KEYS[3])))
end

local at, us = stamp(now), micros(now)
for i = 0, accepted - 1 do
  local id, data, timeout = ARGV[7 + 3 * i], ARGV[8 + 3 * i], ARGV[9 + 3 * i]
  if ARGV[5] == '1' then
    call('HSET', RQ .. 'job:' .. id, 'data', data, 'origin', ARGV[1], 'status', 'queued', 'created_at', at,
      'enqueued_at', at, 'timeout', timeout, 'result_ttl', '0', 'enqueued_us', us, 'reply_to', ARGV[2],
      'client_ttl_us', ARGV[4])
  else
    call('HSET', RQ .. 'job:' .. id, 'data', data, 'origin', ARGV[1], 'status', 'queued', 'created_at', at,
      'enqueued_at', at, 'timeout', timeout, 'result_ttl', ARGV[6], 'failure_ttl', ARGV[6], 'enqueued_us', us)
  end
  call('RPUSH', KEYS[3], id)
end
if accepted > 0 then
  call('SADD', KEYS[2], KEYS[3])
  call('HINCRBY', KEYS[4], 'submitted', accepted)
  arrived(ARGV[1], accepted)
end
if accepted < count then call('HINCRBY', KEYS[4], 'rejected', count - accepted) end
call('HSET', KEYS[5], 'call', ARGV[3], 'answer', accepted, 'maximum', maximum)
return {accepted, maximum}
