-- Every declared queue at one instant, all in one atomic read, whose cost does not grow with what waits. Changes nothing.
-- KEYS 1 scaletest:queues  2 scaletest:clients
-- Answer: {now, living clients, then for each queue {name, declared, waiting, running, paused, age of the oldest in
--          microseconds or nil, counters, wait, run, slots, workers, suspects}} with workers as {name, state, pod,
--          node, answer}; wait and run are fields and values with commas between. A queue whose keys hold something else
--          is {name, why}: it keeps no other from being read.
--@include now
local call = redis.call
local answer = {micros(now), call('ZCOUNT', KEYS[2], micros(now), '+inf')}
local declared = call('HGETALL', KEYS[1])

-- A histogram as one text: hundreds of answers a queue would cost more than reading them.
local function numbers(key) return table.concat(call('HGETALL', key), ',') end

local function age_of_oldest(queue)
  local first = call('LINDEX', queue, 0)
  local job = first and redis.pcall('HGET', 'rq:job:' .. first, 'enqueued_us')
  return type(job) == 'string' and tonumber(job) and micros(math.max(0, now - tonumber(job))) or false
end

local function workers_of(name)
  local rows = {}
  for i, worker in ipairs(call('ZRANGEBYSCORE', 'scaletest:workers:' .. name, micros(now), '+inf')) do
    local row = call('HMGET', 'rq:worker:' .. worker, 'state', 'pod', 'node', 'answer')
    rows[i] = {worker, row[1] or '', row[2] or '', row[3] or '', row[4] or ''}
  end
  return rows
end

local function queue_of(name, entry)
  local own, queue = 'scaletest:queue:' .. name, 'rq:queue:' .. name
  return {name, entry, call('LLEN', queue), call('ZCARD', 'scaletest:leases:' .. name),
    call('EXISTS', own .. ':paused'), age_of_oldest(queue), call('HGETALL', own .. ':counters'),
    numbers(own .. ':wait'), numbers(own .. ':run'), call('HGETALL', own .. ':slots'),
    workers_of(name), call('SMEMBERS', 'scaletest:suspects:' .. name)}
end

for i = 1, #declared, 2 do
  local well, row = pcall(queue_of, declared[i], declared[i + 1])
  answer[#answer + 1] = well and row or {declared[i], type(row) == 'table' and row.err or tostring(row)}
end
return answer
