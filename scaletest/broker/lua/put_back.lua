-- Put back requests that blocking moves took and no call came for, at most so many; how many.
local function put_back(taking, queue, most)
  local moved = 0
  while moved < most and redis.call('LMOVE', taking, queue, 'RIGHT', 'LEFT') do
    moved = moved + 1
  end
  return moved
end
