-- Account for a request that RQ's own code ran: lease, counters, and the reply when one is wanted.
-- KEYS 1 leases  2 rq:queue:<q>  3 counters  4 wait  5 run
-- ARGV 1 id  2 attempt ('' under a stock worker, which takes no lease)  3 worker  4 outcome  5 wait bucket
--      6 run bucket  7 client ('' for none)  8 reply  9 '1' when the request must be counted as submitted first
--      10 when it was taken, in microseconds: an RQ retry or repeat has the same id and attempt again
-- Answer: the time in microseconds when it counted, 0 when somebody else has it or it was counted before.
-- Safe to repeat: for two minutes the answer is remembered.
--@include now
--@include slots
--@include take_back
local call = redis.call
local settled = OWN .. 'settled:' .. ARGV[1] .. ':' .. ARGV[2] .. ':' .. ARGV[3] .. ':' .. ARGV[10]
local before = call('GET', settled)
if before then return before end
if ARGV[2] ~= '' and call('ZREM', KEYS[1], ARGV[1] .. ':' .. ARGV[2] .. ':' .. ARGV[3]) == 0
  and take_back(KEYS[2], ARGV[1]) == 0 then
  call('HINCRBY', KEYS[3], 'stale', 1)
  call('SET', settled, '0', 'EX', 120)
  return '0'
end
call('SET', settled, micros(now), 'EX', 120)
local job = RQ .. 'job:' .. ARGV[1]
if call('HEXISTS', job, 'enqueued_us') == 0 then
  -- a job of stock RQ: when RQ runs it again, that is a new execution in the books
  call('HDEL', job, 'attempts', 'lost_by', 'counted')
end
local name = string.sub(KEYS[2], #RQ + 7)
if ARGV[9] == '1' then
  call('HINCRBY', KEYS[3], 'submitted', 1)
  arrived(name, 1)
end
call('HINCRBY', KEYS[3], ARGV[4], 1)
call('HINCRBY', KEYS[4], ARGV[5], 1)
call('HINCRBY', KEYS[5], ARGV[6], 1)
ended(name, ARGV[5], ARGV[6], ARGV[8])
if ARGV[7] ~= '' then
  if not call('XADD', OWN .. 'replies:' .. ARGV[7], 'NOMKSTREAM', '*', 'r', ARGV[8], 'e', micros(now)) then
    call('HINCRBY', KEYS[3], 'undelivered', 1)
  end
end
return micros(now)
