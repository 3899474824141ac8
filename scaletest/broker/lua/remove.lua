-- Delete a queue with all its keys, so many entries per call, after its waiting requests were purged.
-- KEYS 1 scaletest:queues  2 rq:queues  3 rq:queue:<q>  4 leases  5 rq:wip  6 rq:failed  7 rq:finished  8 rq:workers:<q>
--      9 counters  10 taking
-- ARGV 1 queue  2 how many entries  then our own keys of the queue
-- Answer: 1 when the queue is deleted, 0 when there is more: then purge, and call again.
-- Safe to repeat: deleted entries are not counted again.
--@include now
--@include reply
--@include put_back
--@include executions
local call = redis.call
local room = tonumber(ARGV[2])

local function first_of(registry)
  local rows, ids = call('ZPOPMIN', registry, room), {}
  for i = 1, #rows, 2 do ids[#ids + 1] = rows[i] end
  room = room - #ids
  return ids
end

for _, member in ipairs(first_of(KEYS[4])) do
  local id, attempt, worker = string.match(member, '^([^:]+):(%d+):(.+)$')
  if id then forget_executions(KEYS[5], RQ .. 'worker:' .. worker, id, attempt) end
  id = id or string.match(member, '^[^:]+') or ''
  local client = call('HGET', RQ .. 'job:' .. id, 'reply_to')
  if client then
    local reply = cjson.encode({id = id, outcome = 'purged', error = 'its queue was removed while it ran',
      exit_code = cjson.null, wait_s = 0, run_s = 0})
    send_reply(client, reply)
  end
  call('UNLINK', RQ .. 'job:' .. id)
  call('HINCRBY', KEYS[9], 'purged', 1)
end
for _, registry in ipairs({KEYS[6], KEYS[7]}) do
  for _, id in ipairs(first_of(registry)) do call('UNLINK', RQ .. 'job:' .. id, RQ .. 'results:' .. id) end
end
local workers = call('SPOP', KEYS[8], room)
for _, worker in ipairs(workers) do
  call('SREM', RQ .. 'workers', worker)
  call('UNLINK', worker, worker .. ':executions')
end
room = room - #workers
-- A request that was moved and never taken is a waiting one, too.
room = room - put_back(KEYS[10], KEYS[3], room)
if room == 0 or call('EXISTS', KEYS[3]) == 1 then return 0 end
call('HDEL', KEYS[1], ARGV[1])
call('SREM', KEYS[2], KEYS[3])
call('UNLINK', KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], unpack(ARGV, 3))
return 1
