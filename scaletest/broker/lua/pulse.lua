-- Deadlines do not run while Redis is away. When no heartbeat was seen for longer than an interval, nobody could
-- extend anything: every deadline moves on by three intervals before anybody is judged by it.
local function after_outage(interval)
  local pulse = tonumber(redis.call('GET', 'scaletest:pulse') or '0')
  if now - pulse <= interval then return false end
  -- by the longest interval of any worker: with a shorter one of our own we must not judge the others
  interval = math.max(interval, tonumber(redis.call('GET', 'scaletest:interval') or '0'))
  local function move_on(key)
    local rows = redis.pcall('ZRANGE', key, 0, -1, 'WITHSCORES')
    if rows.err then return end -- not ours: it must not stop the heartbeats of everybody else
    for i = 1, #rows, 2 do
      redis.call('ZADD', key, micros(math.max(tonumber(rows[i + 1]), now) + 3 * interval), rows[i])
    end
  end
  for _, name in ipairs(redis.call('HKEYS', 'scaletest:queues')) do
    move_on('scaletest:leases:' .. name)
    move_on('scaletest:workers:' .. name)
  end
  move_on('scaletest:clients')
  for _, key in ipairs(redis.call('SMEMBERS', 'scaletest:devices')) do
    if redis.call('EXISTS', key) == 0 then redis.call('SREM', 'scaletest:devices', key) end
    move_on(key)
  end
  redis.call('SET', 'scaletest:pulse', micros(now))
  return true
end
