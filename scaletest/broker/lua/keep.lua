-- Keep a job that must not be executed: its client gets a reply, else RQ's failed registry holds it
-- with the reason. It counts as submitted here when it is not a request of ours, or was counted as
-- ended before. Needs reply.lua, stamp.lua and failure.lua.
local function keep(queue, counters, id, reason)
  local job, client = JOB .. id, false
  local kind = redis.call('TYPE', job).ok
  if not string.match(id, '^[%w_-]+$') or #id > 128 or (kind ~= 'hash' and kind ~= 'none') then
    id = 'poison-' .. redis.sha1hex(id)
    job = JOB .. id
    kind = 'none'
  end
  local fields = {}
  if kind == 'hash' then
    fields = redis.call('HMGET', job, 'reply_to', 'enqueued_us', 'counted', 'booked')
  end
  client = fields[1] and string.match(fields[1], '^[%w_-]+$')
  if fields[4] or not (fields[2] or fields[3]) then
    redis.call('HINCRBY', counters, 'submitted', 1)
  end
  redis.call('HINCRBY', counters, 'failed', 1)
  redis.call('HINCRBY', counters, 'poison', 1)
  local reply = {id = id, outcome = 'failed', reason = 'poison', error = reason,
    exit_code = cjson.null, wait_s = 0, run_s = 0}
  keep_failure(FAILURES .. queue, reply)
  if client and send_reply(client, cjson.encode(reply)) then
    redis.call('DEL', job)
    return
  end
  redis.call('HSET', job, 'status', 'failed', 'origin', queue, 'ended_at', stamp(now),
    'exc_info', reason, 'booked', '1')
  redis.call('HSETNX', job, 'data', '')
  redis.call('HSETNX', job, 'created_at', stamp(now))
  redis.call('ZADD', FAILED .. queue, clock[1] + 31536000, id)
end
