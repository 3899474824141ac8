-- What the clock of deadlines (pulse.lua) shows to who only looks: as if it had not stood still since the last heartbeat.
-- So a queue whose workers and clients are all gone does not show them for ever.
local shown = now - (tonumber(redis.call('GET', OWN .. 'standstill') or '') or 0)
