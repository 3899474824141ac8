-- Forget a queue with all that belongs to it, after its waiting requests were purged.
-- KEYS 1 scaletest:queues  2 rq:queues  3 rq:queue:<q>  4 leases  5 rq:wip  6 rq:failed  7 rq:finished  8 rq:workers:<q>
-- ARGV 1 queue  then our own keys of the queue
--@include now
local call = redis.call
for _, member in ipairs(call('ZRANGE', KEYS[4], 0, -1)) do
  local id = string.match(member, '^[^:]+') or ''
  local client = call('HGET', 'rq:job:' .. id, 'reply_to')
  if client then
    local reply = cjson.encode({id = id, outcome = 'purged', error = 'its queue was removed while it ran',
      exit_code = cjson.null, wait_s = 0, run_s = 0})
    call('XADD', 'scaletest:replies:' .. client, 'NOMKSTREAM', '*', 'r', reply, 'e', micros(now))
  end
  call('DEL', 'rq:job:' .. id)
end
for _, registry in ipairs({KEYS[6], KEYS[7]}) do
  for _, id in ipairs(call('ZRANGE', registry, 0, -1)) do call('DEL', 'rq:job:' .. id, 'rq:results:' .. id) end
end
for _, worker in ipairs(call('SMEMBERS', KEYS[8])) do
  call('SREM', 'rq:workers', worker)
  call('DEL', worker)
end
call('HDEL', KEYS[1], ARGV[1])
call('SREM', KEYS[2], KEYS[3])
call('DEL', KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], unpack(ARGV, 2))
return 1
