-- Drop so many waiting requests; their clients get a reply. Call again until fewer are dropped.
-- KEYS 1 rq:queue:<q>  2 counters
-- ARGV 1 how many
-- Answer: how many were dropped.
--@include now
--@include reply
local call = redis.call
local queue, counters = KEYS[1], KEYS[2]
local most = tonumber(ARGV[1])
local dropped = 0
for _ = 1, most do
  local id = call('LPOP', queue)
  if not id then break end
  local job = JOB .. id
  local row = redis.pcall('HMGET', job, 'reply_to', 'enqueued_us', 'attempts', 'counted', 'booked')
  if not row.err then
    if row[1] then
      local reply = cjson.encode({id = id, outcome = 'purged', error = 'purged from the queue',
        exit_code = cjson.null, wait_s = 0, run_s = 0})
      send_reply(row[1], reply)
    end
    if call('UNLINK', job) == 1 then
      -- a job of stock RQ counts as submitted when it is first taken, and one that was counted as
      -- ended counts again
      if row[5] or not (row[2] or row[3] or row[4]) then
        call('HINCRBY', counters, 'submitted', 1)
      end
      call('HINCRBY', counters, 'purged', 1)
    end
  end
  dropped = dropped + 1
end
return dropped
