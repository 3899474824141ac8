-- Names of a queue's own keys.
local function own_key(queue, part) return OWN_QUEUE .. queue .. ':' .. part end
