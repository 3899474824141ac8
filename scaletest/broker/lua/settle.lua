-- Account for a request that RQ's own code ran: lease, counters, and the reply when one is wanted.
-- KEYS 1 leases  2 rq:queue:<q>  3 counters  4 ended  5 slots  6 failures:<q>
-- ARGV 1 id  2 attempt ('' under a stock worker, which takes no lease)  3 worker
--      4 client ('' for none)  5 reply  6 '1' when the request must be counted as submitted first
--      7 when it was taken, in microseconds: an RQ retry or repeat has the same id and attempt
--      again 8-12 the numbers that count it, as 12-16 of cycle.lua
-- Answer: the time in microseconds when it counted, 0 when another worker has the request or it was
--         counted before.
-- Safe to repeat: for two minutes the answer is remembered.
--@include now
--@include reply
--@include arrived
--@include ended
--@include take_back
--@include failure
--@include decoded
local call = redis.call
local leases, queue, counters, ended, slots = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local failures = KEYS[6]
local id, attempt, worker = ARGV[1], ARGV[2], ARGV[3]
local client, reply, counts_first, taken = ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local outcome, wait, run, waited_us, ran_us = ARGV[8], ARGV[9], ARGV[10], ARGV[11], ARGV[12]
local execution = id .. ':' .. attempt .. ':' .. worker
local settled = SETTLED .. execution .. ':' .. taken

local before = call('GET', settled)
if before then return before end
if attempt ~= '' and call('ZREM', leases, execution) == 0
    and take_back(queue, counters, id) == 0 then
  call('HINCRBY', counters, 'stale', '1')
  call('SET', settled, '0', 'EX', '120')
  return '0'
end
call('SET', settled, micros(now), 'EX', '120')
local job = JOB .. id
if call('HEXISTS', job, 'enqueued_us') == 0 then
  -- a job of stock RQ: when RQ runs it again, that counts as a new request
  call('HDEL', job, 'attempts', 'lost_by', 'counted')
end
if counts_first == '1' then
  call('HINCRBY', counters, 'submitted', '1')
  arrived(slots, 1)
end
count_ended(ended, slots, outcome, wait, run, waited_us, ran_us, reply)
if outcome == ENDED_FAILED or outcome == ENDED_TIMED_OUT then
  keep_failure(failures, decoded(reply), worker)
end
if client ~= '' and not send_reply(client, reply) then
  call('HINCRBY', counters, 'undelivered', '1')
end
return micros(now)
