-- Refuse to read what is larger than scaletest writes: somebody else wrote it, and reading it would
-- keep Redis for long. A histogram has 1,450 buckets for up to a month.
local MOST_FIELDS = 2000

local function refuse(key, size, unit)
  error({err = key .. ' has ' .. size .. ' ' .. unit .. ', more than scaletest writes'})
end

-- How many fields a hash has.
local function fields_of(key)
  local fields = redis.call('HLEN', key)
  if fields > MOST_FIELDS then refuse(key, fields, 'fields') end
  return fields
end

-- How many bytes a row of what ended has.
local function bytes_of(key)
  local bytes = redis.call('STRLEN', key)
  if bytes > LONGEST_ROW then refuse(key, bytes, 'bytes') end
  return bytes
end
