-- The state of a worker: {state, pod, node, answer, device, name}, with nil for
-- missing fields. Longer texts than ours are cut.
local LONGEST_TEXT = 500
local function worker_row(worker)
  local row = redis.call('HMGET', WORKER .. worker, 'state', 'pod', 'node', 'answer', 'device')
  row[6] = worker
  for i = 1, 6 do
    if row[i] and #row[i] > LONGEST_TEXT then row[i] = string.sub(row[i], 1, LONGEST_TEXT) end
  end
  return row
end
