-- Delete a queue with all its keys, so many entries per call, after its waiting requests were
-- purged.
-- KEYS 1 scaletest:queues  2 rq:queues  3 rq:queue:<q>  4 leases  5 rq:wip  6 rq:failed
--      7 rq:finished  8 rq:workers:<q>  9 counters  10 taking  11 rq:scheduled
-- ARGV 1 queue  2 how many entries  then our own keys of the queue
-- Answer: 1 when the queue is deleted, 0 when there is more: then purge, and call again.
-- Safe to repeat: deleted entries are not counted again.
--@include now
--@include reply
--@include put_back
--@include executions
local call = redis.call
local queues, rq_queues, queue, leases, started = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local failed, finished, workers, counters, taking = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local scheduled = KEYS[11]
local name, room = ARGV[1], tonumber(ARGV[2])

local function first_of(registry)
  local rows, ids = call('ZPOPMIN', registry, room), {}
  for i = 1, #rows, 2 do ids[#ids + 1] = rows[i] end
  room = room - #ids
  return ids
end

local function drop(id, why)
  local client = call('HGET', JOB .. id, 'reply_to')
  if client then
    local reply = cjson.encode({id = id, outcome = 'purged', exit_code = cjson.null,
      error = 'its queue was removed ' .. why, wait_s = 0, run_s = 0})
    send_reply(client, reply)
  end
  call('UNLINK', JOB .. id)
end

for _, member in ipairs(first_of(leases)) do
  local id, attempt, worker = string.match(member, '^([^:]+):(%d+):(.+)$')
  if id then forget_executions(started, WORKER .. worker, id, attempt) end
  drop(id or string.match(member, '^[^:]+') or '', 'while it ran')
  call('HINCRBY', counters, 'purged', 1)
end
for _, registry in ipairs({failed, finished}) do
  for _, id in ipairs(first_of(registry)) do call('UNLINK', JOB .. id, RESULTS .. id) end
end
for _, id in ipairs(first_of(scheduled)) do drop(id, 'before it was due') end
local forgotten = call('SPOP', workers, room)
for _, worker in ipairs(forgotten) do
  call('SREM', WORKERS, worker)
  call('UNLINK', worker, executions_of(worker))
end
room = room - #forgotten
-- A request that was moved and never taken is a waiting one, too.
room = room - put_back(taking, queue, room)
if room == 0 or call('EXISTS', queue) == 1 then return 0 end
call('HDEL', queues, name)
call('SREM', rq_queues, queue)
call('UNLINK', queue, leases, started, failed, finished, workers, scheduled,
  unpack(ARGV, 3))
return 1
