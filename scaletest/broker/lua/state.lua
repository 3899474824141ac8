-- Read a queue at one instant, atomically. Changes nothing.
-- KEYS 1 scaletest:queues  2 rq:queue:<q>  3 leases  4 workers  5 paused  6 counters  7 ended
--      8 suspects
-- ARGV 1 queue
-- Answer: {declared, waiting, running, workers, paused, age of the oldest in microseconds or nil,
--          counters, suspects, ended or nil}, nil for an undeclared queue, an error for one whose
--          keys hold more than we write
--@include now
--@include shown
--@include sizes
local call = redis.call
local queues, queue, leases, workers, paused = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local counters, ended, suspects = KEYS[6], KEYS[7], KEYS[8]
local name = ARGV[1]

local declared = call('HGET', queues, name)
if not declared then return false end

local function check_sizes()
  fields_of(counters)
  bytes_of(ended)
end

local well, fault = pcall(check_sizes)
if not well then return type(fault) == 'table' and fault or redis.error_reply(fault) end

local oldest = false
local first = call('LINDEX', queue, 0)
if first then
  local enqueued = redis.pcall('HGET', JOB .. first, 'enqueued_us')
  if type(enqueued) == 'string' and tonumber(enqueued) then
    oldest = micros(math.max(0, now - tonumber(enqueued)))
  end
end
return {declared, call('LLEN', queue), call('ZCARD', leases),
  call('ZCOUNT', workers, micros(shown), '+inf'), call('EXISTS', paused), oldest,
  call('HGETALL', counters), call('SMEMBERS', suspects), call('GET', ended)}
