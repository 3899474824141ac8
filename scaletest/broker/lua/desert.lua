-- Drop requests of dead clients from a piece of a queue near its front: where no worker takes them
-- they would wait for ever. Requests without a client, and jobs of others, stay.
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
local places = {}
for i, id in ipairs(ids) do
  if dropped(id) then places[#places + 1] = first + i - 1 end
end
for _, place in ipairs(places) do call('LSET', queue, place, DROPPED) end
-- Redis compares all entries from an end of the list on, 20 ns each: callers stay near the front.
if #places > 0 then call('LREM', queue, #places, DROPPED) end
local is_last = first + #ids >= waiting
return {is_last and -1 or first + #ids - #places, #places}
