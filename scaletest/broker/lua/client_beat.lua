-- Extend the deadline of a client, and create its reply stream if it is missing.
-- KEYS 1 scaletest:clients  2 replies:<id>
-- ARGV 1 client  2 time to live in microseconds  3 interval in microseconds
-- Answer: {1 when the stream existed, 0 when it was created since its replies are lost, the
--         stream's last id}. An id before the one that the client has read means that Redis forgot
--         entries and its clock is behind: new ids would not be larger.
--@include now
--@include pulse
local clients, replies = KEYS[1], KEYS[2]
local client, time_to_live, interval = ARGV[1], ARGV[2], tonumber(ARGV[3])

local ends = micros(deadline_clock(interval) + time_to_live)
remember_interval(interval, ends)
local known = redis.call('EXISTS', replies)
redis.call('ZADD', clients, ends, client)
if known == 0 then
  local entry = redis.call('XADD', replies, '*', 'w', '')
  redis.call('XDEL', replies, entry)
end
-- No time to live: a step of the clock would end it. Reapers delete the streams of dead clients.
local stream = redis.call('XINFO', 'STREAM', replies)
for i = 1, #stream, 2 do
  if stream[i] == 'last-generated-id' then return {known, stream[i + 1]} end
end
