-- Decide whose turn it is to reap a queue: its workers take turns by their heartbeats, so that one
-- of them reaps each period, however many they are. When that worker dies, the next heartbeat gets
-- the turn. reaps: when the next turn is, on the clock of deadlines. It protects nothing, so it may
-- expire: then the next heartbeat has the turn.

-- Heartbeats that come a little early must not leave a turn to the next period, so it ends sooner
-- than they are apart; and a reaper that comes for the end of a lease may be so many microseconds
-- early.
local PART_OF_TICK, EARLY = 0.75, 10000

-- Whether it is the turn of this heartbeat, whose worker comes every `tick` microseconds.
local function takes_turn(reaps, leases, tick, at)
  local due = tonumber(redis.pcall('GET', reaps)) -- nil where the key holds something foreign
  local mine = at + PART_OF_TICK * tick
  if due and due > at + EARLY and due <= mine then return false end
  local first = redis.call('ZRANGE', leases, 0, 0, 'WITHSCORES')[2]
  if first then mine = math.max(at, math.min(mine, tonumber(first))) end
  redis.call('SET', reaps, micros(mine), 'EX', 60)
  return true
end
