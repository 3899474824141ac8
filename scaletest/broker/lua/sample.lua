-- Keep a sample of a node, from the worker that samples it.
-- KEYS 1 scaletest:queues  2 samples:<q>  3 samplers:<q>  4 leases  5 counters
-- ARGV 1 queue  2 node  3 worker  4 about how many samples are kept  5 sample
-- Answer: {how many requests run, how many were submitted}, nil for a queue that is not declared
--         and for any other worker
local call = redis.call
local queues, samples, samplers, leases, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local queue, node, worker, most, sample = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

if call('HEXISTS', queues, queue) == 0 or call('HGET', samplers, node) ~= worker then
  return false
end
call('XADD', samples, 'MAXLEN', '~', most, '*', 's', sample)
return {call('ZCARD', leases), tonumber(call('HGET', counters, 'submitted') or '') or 0}
