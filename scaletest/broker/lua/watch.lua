-- A watcher's heartbeat: Redis is alive. Without it nobody could judge a deadline on a queue whose workers all died.
-- KEYS 1 scaletest:pulse   ARGV 1 interval in microseconds
--@include now
--@include pulse
after_outage(tonumber(ARGV[1]))
redis.call('SET', KEYS[1], micros(now))
return 1
