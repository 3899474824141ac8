-- The state of a worker: {state, pod, node, answer, name}, with nil for missing fields.
local function worker_row(worker)
  local row = redis.call('HMGET', WORKER .. worker, 'state', 'pod', 'node', 'answer')
  row[5] = worker
  return row
end
