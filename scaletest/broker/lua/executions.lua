-- What RQ's tools show of a running request: an execution, whose id is the attempt.
-- started: the queue's registry of started jobs; worker: the key of its hash.
local YEAR, KEPT_S = 31536000, 660
-- When an execution expires for RQ, which asks the clock of whoever cleans its registries:
-- in the year 3000, so that no setting of Redis's clock makes it look expired.
local NEVER = 32503680000

-- RQ's set of what a worker runs.
local function executions_of(worker) return worker .. ':executions' end

-- Only heartbeats write an execution, so that short requests cost nothing.
local function show_execution(started, worker, name, id, attempt)
  local execution = id .. ':' .. attempt
  local key = EXECUTION .. execution
  redis.call('ZADD', started, NEVER, execution)
  redis.call('HSETNX', key, 'created_at', clock[1])
  redis.call('HSET', key, 'id', attempt, 'job_id', id, 'worker_name', name,
    'last_heartbeat', clock[1])
  redis.call('ZADD', EXECUTIONS .. id, NEVER, attempt)
  redis.call('SADD', executions_of(worker), execution)
end

-- Let nothing expire of a job that RQ's own code runs. It keeps its registries itself, under an
-- execution id of its own.
local function keep_executions(started, id)
  for _, execution in ipairs(redis.call('ZRANGE', EXECUTIONS .. id, 0, -1)) do
    local member = id .. ':' .. execution
    redis.call('ZADD', started, 'XX', NEVER, member)
    redis.call('EXPIRE', EXECUTION .. member, KEPT_S)
    redis.call('EXPIRE', EXECUTIONS .. id, KEPT_S)
  end
end

-- Delete the execution of an attempt, and those of RQ's own code, whose ids are not attempts. The
-- execution of a later attempt stays: its worker still runs it.
local function forget_executions(started, worker, id, attempt)
  local executions = EXECUTIONS .. id
  local function forget(execution)
    local member = id .. ':' .. execution
    redis.call('ZREM', started, member)
    redis.call('DEL', EXECUTION .. member)
    redis.call('SREM', executions_of(worker), member)
    redis.call('ZREM', executions, execution)
  end
  forget(attempt)
  for _, execution in ipairs(redis.call('ZRANGE', executions, 0, -1)) do
    if not string.match(execution, '^%d+$') then forget(execution) end
  end
end
