-- Read declared queues, each at one instant: as many of the requested ones as one call may read, the first at least. The
-- cost does not grow with the queues' lengths. Changes nothing.
-- KEYS 1 scaletest:queues  2 scaletest:clients   ARGV names of queues
-- Answer: {now, living clients, then for each queue {name, declared, waiting, running, paused, age of the oldest in
--          microseconds or nil, counters, wait, run, slots, workers, suspects, ended or nil}} with workers as rows
--          of worker_row.lua, or nil when they are too many for one call; wait and run are fields and values with commas
--          between. A queue whose keys hold something else is {name, why}, so that the others are read. One that is
--          not declared any more is {name}.
--@include now
--@include shown
--@include worker_row
local call = redis.call
local answer = {micros(now), call('ZCOUNT', KEYS[2], micros(shown), '+inf')}
-- Entries of hashes and sets that one call may read, about 0.3 us each; an empty queue counts as QUEUE entries.
local BUDGET, QUEUE = 5000, 100
-- A histogram has 1,450 buckets for up to a month.
local MOST_FIELDS, MOST_WORKERS = 2000, 900
-- Cost of reading a worker, in entries.
local WORKER = 8
local spent = 0

local function size_of(key)
  local fields = call('HLEN', key)
  if fields > MOST_FIELDS then error({err = key .. ' has ' .. fields .. ' fields, more than scaletest writes'}) end
  return fields
end

-- A histogram as one text: hundreds of answers a queue would cost more than reading them.
local function numbers(key) return table.concat(call('HGETALL', key), ',') end

local function age_of_oldest(queue)
  local first = call('LINDEX', queue, 0)
  local job = first and redis.pcall('HGET', RQ .. 'job:' .. first, 'enqueued_us')
  return type(job) == 'string' and tonumber(job) and micros(math.max(0, now - tonumber(job))) or false
end

local function workers_of(name)
  local rows = {}
  for i, worker in ipairs(call('ZRANGEBYSCORE', OWN .. 'workers:' .. name, micros(shown), '+inf')) do
    rows[i] = worker_row(worker)
  end
  return rows
end

-- Cost of reading a queue, and whether its workers are read with it.
local function cost_of(name)
  local own, workers = OWN .. 'queue:' .. name, OWN .. 'workers:' .. name
  local cost = QUEUE + size_of(own .. ':counters') + size_of(own .. ':wait') + size_of(own .. ':run')
    + size_of(own .. ':slots') + math.floor(call('STRLEN', own .. ':ended') / 500)
  local people = call('ZCOUNT', workers, micros(shown), '+inf') + call('SCARD', OWN .. 'suspects:' .. name)
  if people > MOST_WORKERS then return cost, false end
  return cost + WORKER * people, true
end

local function queue_of(name, with_workers)
  local own, queue = OWN .. 'queue:' .. name, RQ .. 'queue:' .. name
  return {name, call('HGET', KEYS[1], name), call('LLEN', queue), call('ZCARD', OWN .. 'leases:' .. name),
    call('EXISTS', own .. ':paused'), age_of_oldest(queue), call('HGETALL', own .. ':counters'),
    numbers(own .. ':wait'), numbers(own .. ':run'), call('HGETALL', own .. ':slots'),
    with_workers and workers_of(name), with_workers and call('SMEMBERS', OWN .. 'suspects:' .. name),
    call('GET', own .. ':ended')}
end

-- The queue's row, nil when it exceeds the rest of this call's budget.
local function row_of(name)
  if call('HEXISTS', KEYS[1], name) == 0 then return {name} end
  local cost, with_workers = cost_of(name)
  if spent > 0 and spent + cost > BUDGET then return nil end
  spent = spent + cost
  return queue_of(name, with_workers)
end

for _, name in ipairs(ARGV) do
  local well, row = pcall(row_of, name)
  if well and not row then break end
  if not well then spent = spent + QUEUE end
  answer[#answer + 1] = well and row or {name, type(row) == 'table' and row.err or tostring(row)}
end
return answer
