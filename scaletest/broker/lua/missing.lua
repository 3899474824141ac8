-- Find a client's requests that Redis does not know (any more): after a crash it may have forgotten
-- some.
-- KEYS 1 replies:<id>   ARGV request ids
-- Answer: {last entry of the stream so far, the unknown ids...}. An unknown request is either
--         answered, then its reply is that entry or an earlier one, or it is lost.
local call = redis.call
local replies = KEYS[1]
local newest = call('XREVRANGE', replies, '+', '-', 'COUNT', 1)[1]
local answer = {newest and newest[1] or '0-0'}
for _, id in ipairs(ARGV) do
  if call('EXISTS', JOB .. id) == 0 then answer[#answer + 1] = id end
end
return answer
