-- A client's heartbeat: it lives, and its reply stream exists.
-- KEYS 1 scaletest:clients  2 replies:<id>  3 client:<id>
-- ARGV 1 client  2 time to live in microseconds  3 interval in microseconds
-- Answer: 1 when the stream existed, 0 when it had to be made: what it held is lost.
--@include now
--@include pulse
after_outage(tonumber(ARGV[3]))
redis.call('SET', 'scaletest:pulse', micros(now))
local known = redis.call('EXISTS', KEYS[2])
redis.call('ZADD', KEYS[1], micros(now + ARGV[2]), ARGV[1])
if known == 0 then
  local entry = redis.call('XADD', KEYS[2], '*', 'w', '')
  redis.call('XDEL', KEYS[2], entry)
end
-- An hour, not the client's time to live: after an outage the client must find its replies.
redis.call('EXPIRE', KEYS[2], math.max(3600, 2 * ARGV[2] / 1000000))
return known
