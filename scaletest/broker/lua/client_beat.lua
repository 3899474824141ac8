-- A client's heartbeat: it lives, and its reply stream exists.
-- KEYS 1 scaletest:clients  2 replies:<id>
-- ARGV 1 client  2 time to live in microseconds  3 interval in microseconds
-- Answer: {1 when the stream existed or 0 when it had to be made: what it held is lost, the stream's last id}. An id before
--         the one that the client has read means that Redis forgot entries and its clock is behind: new ones would never
--         be larger.
--@include now
--@include pulse
local ends = micros(deadline_clock(tonumber(ARGV[3])) + ARGV[2])
remember_interval(tonumber(ARGV[3]), ends)
local known = redis.call('EXISTS', KEYS[2])
redis.call('ZADD', KEYS[1], ends, ARGV[1])
if known == 0 then
  local entry = redis.call('XADD', KEYS[2], '*', 'w', '')
  redis.call('XDEL', KEYS[2], entry)
end
-- No time to live: a step of the clock would end it. Reapers delete the streams of the dead.
local stream = redis.call('XINFO', 'STREAM', KEYS[2])
for i = 1, #stream, 2 do
  if stream[i] == 'last-generated-id' then return {known, stream[i + 1]} end
end
