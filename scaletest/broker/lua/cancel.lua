-- A client gives up requests that still wait. Those that run are finished and answered all the same.
-- KEYS 1 rq:queue:<q>  2 counters   ARGV request ids
-- Answer: how many were taken out of the queue. They count as client_gone.
local cancelled = 0
for _, id in ipairs(ARGV) do
  if redis.call('LREM', KEYS[1], 1, id) == 1 then
    redis.call('DEL', 'rq:job:' .. id)
    cancelled = cancelled + 1
  end
end
if cancelled > 0 then redis.call('HINCRBY', KEYS[2], 'client_gone', cancelled) end
return cancelled
