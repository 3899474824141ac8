-- Read the clock of deadlines (pulse.lua) without setting it, as if it had not stood still since
-- the last heartbeat. So a queue whose workers and clients are all dead does not show them for
-- ever.
local shown = now - (tonumber(redis.call('GET', STANDSTILL) or '') or 0)
