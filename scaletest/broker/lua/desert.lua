-- Drop requests of dead clients from a piece of a queue: where no worker takes them they would wait
-- for ever. Requests without a client, and jobs of others, stay. The time that it takes does not
-- grow with the queue.
-- KEYS 1 rq:queue:<q>  2 counters
-- ARGV 1 where the piece begins, from 0  2 how many entries it has  3 interval in microseconds
-- Answer: {where the next piece begins, -1 after the last, how many requests were dropped}
--@include now
--@include pulse
--@include reply
--@include gone
local call = redis.call
local queue, counters = KEYS[1], KEYS[2]
local first, size, interval = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local at = deadline_clock(interval)
-- Redis removes from the middle of a list by comparing all entries before it, 20 ns each, and
-- reaches a place in it in 30 us: so far from an end that this would take long, the last entry
-- takes the place, and only at so many places a call.
local NEAR, MOST = 20000, 32
-- Marks the place of a dropped request while this script runs. No job has such an id.
local DROPPED = ':dropped'

local gone = {}
local function client_gone(client)
  if gone[client] == nil then
    local deadline = call('ZSCORE', CLIENTS, client)
    gone[client] = not deadline or tonumber(deadline) < at
  end
  return gone[client]
end

local function is_time(text) return text and #text <= 17 and string.match(text, '^%d+$') end

-- Drop a request if its client is dead, as workers do: see cycle.lua.
local function dropped(id)
  if not string.match(id, '^[%w_-]+$') then return false end
  local job = redis.pcall('HMGET', JOB .. id, 'reply_to', 'enqueued_us', 'client_ttl_us', 'booked')
  if job.err or not (job[1] and string.match(job[1], '^[%w_-]+$')) then return false end
  if not (is_time(job[2]) and is_time(job[3])) then return false end
  -- a request from the future was submitted before the clock was set back
  local waited = now - job[2]
  if waited >= 0 and waited <= tonumber(job[3]) or not client_gone(job[1]) then return false end
  drop(id, job[1], counters, job[4])
  return true
end

local waiting = call('LLEN', queue)
local ids = call('LRANGE', queue, first, first + size - 1)
local before, after = first + #ids, waiting - first
local near = math.min(before, after) <= NEAR
local looked, places = 0, {}
for i, id in ipairs(ids) do
  if not near and #places == MOST then break end
  if dropped(id) then places[#places + 1] = first + i - 1 end
  looked = i
end
for _, place in ipairs(places) do
  call('LSET', queue, place, near and DROPPED or call('RPOP', queue))
end
if near and #places > 0 then
  call('LREM', queue, before <= after and #places or -#places, DROPPED)
end
local last = first + looked >= waiting
return {last and -1 or first + looked - (near and #places or 0), #places}
