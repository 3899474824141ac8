-- Take a request out of its queue whose lease ran out and which nobody took since; whether it was
-- queued. A reaper put it at the front, a client that thought it lost at the end. The middle is not
-- searched: a million entries take 20 ms.
local function take_back(queue, counters, id)
  for _, rank in ipairs({'1', '-1'}) do
    if redis.call('LPOS', queue, id, 'RANK', rank, 'MAXLEN', '50000') then
      if redis.pcall('HEXISTS', JOB .. id, 'booked') == 1 then
        -- it was counted as ended, and somebody requeued it from RQ's failed registry
        redis.call('HINCRBY', counters, 'submitted', '1')
      end
      return redis.call('LREM', queue, rank, id)
    end
  end
  return 0
end
