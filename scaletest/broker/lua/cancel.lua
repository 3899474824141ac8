-- Take cancelled requests out of one stretch of a queue. The stretches go from the list's end to
-- its front: requests that are added meanwhile come behind them, and workers take those before
-- them.
-- KEYS 1 rq:queue:<q>  2 counters  3 cancelled:<client>, a set of ids and of '', which marks it
--      complete
-- ARGV 1 how many entries behind the stretch were checked
--      2 the last of them, '' when there is none  3 how many entries to check
-- Answer: {entries checked, the last of them, cancelled ids not reached yet, '1' at the front of
--         the list}, nil when the set is lost. Requests that are taken out count as client_gone.
-- Safe to repeat: requests that were taken out are not members of the set any more.
local call = redis.call
local queue, counters, cancelled = KEYS[1], KEYS[2], KEYS[3]
local checked, last_checked, batch = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
-- Removing an entry means comparing all from one end of the list up to it, 10 to 20 ns each.
local REACH = 100000
-- An entry is reached by its number in hops from block to block, about 1 us for 100,000 entries.
local BUDGET_US = 3000
-- More changes than these behind the stretch since the last call, and the sweep begins anew.
local DRIFT = 1000

if call('SISMEMBER', cancelled, '') == 0 then return false end
call('EXPIRE', cancelled, 60)

-- How many entries lie behind the stretch now: since the last call some were added there, or taken
-- out for somebody else.
local function entries_behind(count, last)
  if last == '' or call('LINDEX', queue, -count) == last then return count end
  local nearest = math.max(0, count - DRIFT)
  local ids = call('LRANGE', queue, -count - DRIFT, -nearest - 1)
  for i = #ids, 1, -1 do
    if ids[i] == last then return nearest + #ids - i + 1 end
  end
  return 0
end

local behind, length = entries_behind(checked, last_checked), call('LLEN', queue)
local stretch = call('LRANGE', queue, -behind - batch, -behind - 1)
if #stretch == 0 then return {behind, '', call('SCARD', cancelled) - 1, '1'} end

local from_front, from_end = length - behind, behind + #stretch
local depth = math.min(from_front, from_end)
local is_deep = depth > REACH
local most = is_deep and math.max(1, math.floor(BUDGET_US / (2 + depth / 100000))) or #stretch
local marks, ids, jobs, last = call('SMISMEMBER', cancelled, unpack(stretch)), {}, {}, 0
-- Requests that were counted as ended, and that somebody requeued from RQ's failed registry.
local again = 0
for i = #stretch, 1, -1 do
  if marks[i] == 1 and #ids == most then break end
  last = i
  if marks[i] == 1 then
    ids[#ids + 1], jobs[#jobs + 1] = stretch[i], JOB .. stretch[i]
    if redis.pcall('HEXISTS', jobs[#jobs], 'booked') == 1 then again = again + 1 end
    -- Deep in a long list removing is too slow. There the newest request takes the place, which
    -- delays no other.
    local filler = is_deep and call('RPOP', queue) or cancelled
    call('LSET', queue, (is_deep and #ids or 0) - behind - #stretch + i - 1, filler)
    stretch[i] = filler
  end
end
if #ids > 0 then
  if not is_deep then call('LREM', queue, from_front < from_end and #ids or -#ids, cancelled) end
  call('SREM', cancelled, unpack(ids))
  call('UNLINK', unpack(jobs))
  if again > 0 then call('HINCRBY', counters, 'submitted', again) end
  call('HINCRBY', counters, 'client_gone', #ids)
end
local looked_at = behind + #stretch - last + 1 - #ids
return {looked_at, looked_at > 0 and call('LINDEX', queue, -looked_at) or '',
  call('SCARD', cancelled) - 1, last == 1 and #stretch < batch and '1' or ''}
