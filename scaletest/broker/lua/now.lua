local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local function micros(value) return string.format('%.0f', value) end
