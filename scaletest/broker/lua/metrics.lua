-- Read declared queues, each at one instant: as many of the requested ones as one call may read,
-- the first at least. The cost does not grow with the queues' lengths. Changes nothing.
-- KEYS 1 scaletest:queues  2 scaletest:clients   ARGV names of queues
-- Answer: {now, living clients, then for each queue {name, declared, waiting, running, paused, age
--          of the oldest in microseconds or nil, counters, slots, workers, suspects, ended or
--          nil}} with workers as rows of worker_row.lua, or nil when they are too many for one
--          call. A queue whose keys hold something else is {name, why}, so that the others are
--          read. One that is not declared any more is {name}.
--@include now
--@include shown
--@include worker_row
--@include sizes
--@include queue_keys
local call = redis.call
local queues, clients = KEYS[1], KEYS[2]
local answer = {micros(now), call('ZCOUNT', clients, micros(shown), '+inf')}
-- Entries of hashes and sets that one call may read, about 0.3 us each; an empty queue counts as
-- QUEUE entries, a worker as WORKER.
local BUDGET, QUEUE, WORKER_COST = 2500, 100, 8
local MOST_WORKERS = 900
local spent = 0

local function age_of_oldest(waiting)
  local first = call('LINDEX', waiting, 0)
  local enqueued = first and redis.pcall('HGET', JOB .. first, 'enqueued_us')
  if type(enqueued) ~= 'string' or not tonumber(enqueued) then return false end
  return micros(math.max(0, now - tonumber(enqueued)))
end

local function workers_of(name)
  local rows = {}
  local living = call('ZRANGEBYSCORE', QUEUE_WORKERS .. name, micros(shown), '+inf')
  for i, worker in ipairs(living) do rows[i] = worker_row(worker) end
  return rows
end

-- Cost of reading a queue, and whether its workers are read with it.
local function cost_of(name)
  local cost = QUEUE + math.floor(bytes_of(own_key(name, 'ended')) / 500)
  cost = cost + fields_of(own_key(name, 'counters')) + fields_of(own_key(name, 'slots'))
  local people = call('ZCOUNT', QUEUE_WORKERS .. name, micros(shown), '+inf')
    + call('SCARD', SUSPECTS .. name)
  if people > MOST_WORKERS then return cost, false end
  return cost + WORKER_COST * people, true
end

local function queue_of(name, with_workers)
  local waiting = RQ_QUEUE .. name
  return {name, call('HGET', queues, name), call('LLEN', waiting), call('ZCARD', LEASES .. name),
    call('EXISTS', own_key(name, 'paused')), age_of_oldest(waiting),
    call('HGETALL', own_key(name, 'counters')), call('HGETALL', own_key(name, 'slots')),
    with_workers and workers_of(name), with_workers and call('SMEMBERS', SUSPECTS .. name),
    call('GET', own_key(name, 'ended'))}
end

-- The queue's row, nil when it exceeds the rest of this call's budget.
local function row_of(name)
  if call('HEXISTS', queues, name) == 0 then return {name} end
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
