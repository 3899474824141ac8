-- Keep a sample of a node, from the worker that samples it.
-- KEYS 1 scaletest:queues  2 samples:<q>  3 samplers:<q>  4 leases  5 counters
-- ARGV 1 queue  2 node  3 worker  4 about how many samples are kept  5 sample
-- Answer: {how many requests run, how many were submitted}, nil for a queue that is not declared and for any other worker
local call = redis.call
if call('HEXISTS', KEYS[1], ARGV[1]) == 0 or call('HGET', KEYS[3], ARGV[2]) ~= ARGV[3] then return false end
call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[4], '*', 's', ARGV[5])
return {call('ZCARD', KEYS[4]), tonumber(call('HGET', KEYS[5], 'submitted') or '') or 0}
