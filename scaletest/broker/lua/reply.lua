-- Add a reply to a client's stream; nil when nobody is there to read it.
local function send_reply(client, reply)
  return redis.call('XADD', REPLIES .. client, 'NOMKSTREAM', '*', 'r', reply, 'e', micros(now))
end
