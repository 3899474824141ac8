-- Extend the deadline of a client, and create its reply stream if it is missing.
-- KEYS 1 scaletest:clients  2 replies:<id>
-- ARGV 1 client  2 time to live in microseconds  3 interval in microseconds
-- Answer: {1 when the stream existed, 0 when it was created since its replies are lost, the stream's last id}. An id
--         before the one that the client has read means that Redis forgot entries and its clock is behind: new ids would
--         not be larger.
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
-- No time to live: a step of the clock would end it. Reapers delete the streams of dead clients.
local stream = redis.call('XINFO', 'STREAM', KEYS[2])
for i = 1, #stream, 2 do
  if stream[i] == 'last-generated-id' then return {known, stream[i + 1]} end
end
