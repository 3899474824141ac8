-- Keep a request that failed or timed out among the last ones of its queue (broker/failures.py).
-- key: their stream. reply: a table of texts and numbers; null and other values are left out, and
-- nothing is kept of a reply without an id.
-- worker: whose node and pod are kept where the reply has none.
local function keep_failure(key, reply, worker)
  local function text(name)
    local value = reply[name]
    if type(value) == 'number' then return string.format('%.0f', value) end
    if type(value) ~= 'string' then return '' end
    if #value <= LONGEST_FAILURE then return value end
    local half = math.floor((LONGEST_FAILURE - 5) / 2)
    return string.sub(value, 1, half) .. ' ... ' .. string.sub(value, -half)
  end
  if type(reply.id) ~= 'string' then return end
  if worker and type(reply.node) ~= 'string' then
    local place = redis.pcall('HMGET', WORKER .. worker, 'node', 'pod')
    reply.node, reply.pod = place[1], place[2]
  end
  -- a foreign value in place of the stream costs the entry, and no worker its life
  redis.pcall('XADD', key, 'MAXLEN', MOST_FAILURES, '*', 'at_us', micros(now), 'id', text('id'),
    'node', text('node'), 'device', text('device'), 'pod', text('pod'),
    'outcome', text('outcome'), 'reason', text('reason'), 'exit_code', text('exit_code'),
    'attempts', text('attempts'), 'error', text('error'))
end
