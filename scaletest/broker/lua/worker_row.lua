-- The state of a worker: {state, pod, node, answer, device, last_heartbeat, name}, with nil for
-- missing fields.
local function worker_row(worker)
  local row = redis.call('HMGET', WORKER .. worker, 'state', 'pod', 'node', 'answer', 'device',
    'last_heartbeat')
  row[7] = worker
  return row
end
