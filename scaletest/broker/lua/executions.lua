-- Write what RQ's tools show of a running request: an execution, whose id is the attempt. Only heartbeats write it, so
-- that short requests cost nothing. started: the queue's registry of started jobs; worker: the key of its hash.
local function show_execution(started, worker, name, id, attempt)
  local execution = id .. ':' .. attempt
  local key = RQ .. 'execution:' .. execution
  redis.call('ZADD', started, clock[1] + 31536000, execution)
  redis.call('HSETNX', key, 'created_at', clock[1])
  redis.call('HSET', key, 'id', attempt, 'job_id', id, 'worker_name', name, 'last_heartbeat', clock[1])
  redis.call('ZADD', RQ .. 'executions:' .. id, clock[1] + 31536000, attempt)
  redis.call('SADD', worker .. ':executions', execution)
end

-- Delete the execution of an attempt, and those of RQ's own code, whose ids are not attempts. The execution of a later
-- attempt stays: its worker still runs it.
local function forget_executions(started, worker, id, attempt)
  local executions = RQ .. 'executions:' .. id
  local function forget(execution)
    local member = id .. ':' .. execution
    redis.call('ZREM', started, member)
    redis.call('DEL', RQ .. 'execution:' .. member)
    redis.call('SREM', worker .. ':executions', member)
    redis.call('ZREM', executions, execution)
  end
  forget(attempt)
  for _, execution in ipairs(redis.call('ZRANGE', executions, 0, -1)) do
    if not string.match(execution, '^%d+$') then forget(execution) end
  end
end
