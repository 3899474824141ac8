-- Drop up to ARGV[1] waiting requests; their clients get a reply. Call again until fewer are dropped.
-- KEYS 1 rq:queue:<q>  2 counters
-- Answer: how many were dropped.
--@include now
--@include reply
local call = redis.call
local dropped = 0
for _ = 1, tonumber(ARGV[1]) do
  local id = call('LPOP', KEYS[1])
  if not id then break end
  local job = RQ .. 'job:' .. id
  local row = redis.pcall('HMGET', job, 'reply_to', 'enqueued_us', 'attempts', 'counted', 'booked')
  if not row.err then
    if row[1] then
      local reply = cjson.encode({id = id, outcome = 'purged', error = 'purged from the queue', exit_code = cjson.null,
        wait_s = 0, run_s = 0})
      send_reply(row[1], reply)
    end
    if call('UNLINK', job) == 1 then
      -- a job of stock RQ counts as submitted when it is first taken, and one that was counted as ended counts again
      if row[5] or not (row[2] or row[3] or row[4]) then call('HINCRBY', KEYS[2], 'submitted', 1) end
      call('HINCRBY', KEYS[2], 'purged', 1)
    end
  end
  dropped = dropped + 1
end
return dropped
