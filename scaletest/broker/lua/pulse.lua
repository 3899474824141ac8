-- The clock of deadlines: Redis's clock without outages. It stands still while Redis is away, and
-- when Redis's clock is set it continues unchanged, so that neither an outage nor a step of the
-- clock, of any size and in either direction, ends a lease or keeps one. Two numbers hold it:
-- scaletest:pulse, when a heartbeat was seen last, and scaletest:standstill, how far this clock is
-- behind Redis's.

-- The shortest heartbeat interval among `interval` and those of living workers and clients: no
-- deadline is nearer.
local function shortest_interval(interval, last)
  local rows = redis.pcall('ZRANGE', INTERVALS, 0, -1, 'WITHSCORES')
  if rows.err then return interval end -- a foreign key must not stop all heartbeats
  for i = 1, #rows, 2 do
    if tonumber(rows[i + 1]) < last then
      redis.call('ZREM', INTERVALS, rows[i])
    else
      interval = math.min(interval, tonumber(rows[i]) or interval)
    end
  end
  return interval
end

-- Remember until its deadline that a worker or client beats so often. Intervals are rounded down to
-- two digits: so they stay few where every worker has one of its own, and every heartbeat reads
-- them all.
local function remember_interval(interval, ends)
  local step = 10 ^ math.max(0, #micros(interval) - 2)
  redis.call('ZADD', INTERVALS, ends, micros(math.floor(interval / step) * step))
end

-- Set the clock of deadlines at a heartbeat, and answer its time. After a gap longer than an
-- interval, Redis was away or its clock was set; then the clock advances by a quarter of that
-- interval only, so that everybody has the time to come back. Not by zero: where nobody else is
-- left, the deadline of a dead worker must still pass.
local function deadline_clock(interval)
  local row = redis.call('MGET', PULSE, STANDSTILL)
  local pulse, standstill = tonumber(row[1] or '') or now, tonumber(row[2] or '') or 0
  local gap = now - pulse
  local shortest = shortest_interval(interval, pulse - standstill)
  local passed = gap
  if gap < 0 then
    passed = 0
  elseif gap > shortest then
    passed = math.floor(shortest / 4)
  end
  redis.call('SET', PULSE, micros(now))
  if passed ~= gap then
    standstill = standstill + gap - passed
    redis.call('SET', STANDSTILL, micros(standstill))
  end
  return now - standstill
end
