-- Account for a request that RQ's own code ran: lease, counters, and the reply when one is wanted.
-- KEYS 1 leases  2 rq:queue:<q>  3 counters  4 ended  5 slots
-- ARGV 1 id  2 attempt ('' under a stock worker, which takes no lease)  3 worker  4 queue  5 client ('' for none)  6 reply
--      7 '1' when the request must be counted as submitted first  8 when it was taken, in microseconds: an RQ retry or
--      repeat has the same id and attempt again  9-13 the numbers that count it, as 12-16 of cycle.lua
-- Answer: the time in microseconds when it counted, 0 when another worker has the request or it was counted before.
-- Safe to repeat: for two minutes the answer is remembered.
--@include now
--@include reply
--@include arrived
--@include ended
--@include take_back
local call = redis.call
local leases, queue, counters, ended, slots = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, attempt, worker, queue_name = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local client, reply, counts_first, taken = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local execution = id .. ':' .. attempt .. ':' .. worker
local settled = OWN .. 'settled:' .. execution .. ':' .. taken
local before = call('GET', settled)
if before then return before end
if attempt ~= '' and call('ZREM', leases, execution) == 0 and take_back(queue, counters, id) == 0 then
  call('HINCRBY', counters, 'stale', '1')
  call('SET', settled, '0', 'EX', '120')
  return '0'
end
call('SET', settled, micros(now), 'EX', '120')
local job = RQ .. 'job:' .. id
if call('HEXISTS', job, 'enqueued_us') == 0 then
  -- a job of stock RQ: when RQ runs it again, that counts as a new request
  call('HDEL', job, 'attempts', 'lost_by', 'counted')
end
if counts_first == '1' then
  call('HINCRBY', counters, 'submitted', '1')
  arrived(queue_name, 1)
end
count_ended(ended, slots, ARGV[9], ARGV[10], ARGV[11], ARGV[12], ARGV[13], reply)
if client ~= '' and not send_reply(client, reply) then call('HINCRBY', counters, 'undelivered', '1') end
return micros(now)
