-- Put back what blocking moves took out of a queue and no call came for, so many entries at most; how many.
local function put_back(taking, queue, most)
  local moved = 0
  while moved < most and redis.call('LMOVE', taking, queue, 'RIGHT', 'LEFT') do moved = moved + 1 end
  return moved
end
