-- End a waiting request whose client is dead. Needs reply.lua.
-- booked: it was counted as ended before, and somebody requeued it from RQ's failed registry.
local function drop(id, client, counters, booked)
  redis.call('DEL', JOB .. id)
  if booked then redis.call('HINCRBY', counters, 'submitted', 1) end
  redis.call('HINCRBY', counters, 'client_gone', 1)
  -- the client may only have been frozen
  local reply = cjson.encode({id = id, outcome = 'client_gone', exit_code = cjson.null,
    error = 'its client was silent for too long', wait_s = 0, run_s = 0})
  send_reply(client, reply)
end
