-- Read a queue at one instant, atomically. Changes nothing.
-- KEYS 1 scaletest:queues  2 rq:queue:<q>  3 leases  4 workers  5 paused  6 counters  7 wait  8 run  9 ended
-- ARGV 1 queue
-- Answer: {declared, waiting, running, workers, paused, age of the oldest in microseconds or nil,
--          counters, wait, run, suspects, ended or nil}, nil for an undeclared queue
--@include now
--@include shown
local call = redis.call
local name = ARGV[1]
local declared = call('HGET', KEYS[1], name)
if not declared then return false end
local oldest = false
local first = call('LINDEX', KEYS[2], 0)
if first then
  local job = redis.pcall('HGET', RQ .. 'job:' .. first, 'enqueued_us')
  if type(job) == 'string' and tonumber(job) then oldest = micros(math.max(0, now - tonumber(job))) end
end
return {declared, call('LLEN', KEYS[2]), call('ZCARD', KEYS[3]),
  call('ZCOUNT', KEYS[4], micros(shown), '+inf'), call('EXISTS', KEYS[5]), oldest,
  call('HGETALL', KEYS[6]), call('HGETALL', KEYS[7]), call('HGETALL', KEYS[8]),
  call('SMEMBERS', OWN .. 'suspects:' .. name), call('GET', KEYS[9])}
