-- Count an ended request in a row of 64-bit numbers, by one command: model/queue_counts.py says
-- which number is which. ii is the place in the ring of 64 slots of ten seconds, of two digits. A
-- slot that was last written a turn of the ring ago is begun anew, so nothing has to expire. Where
-- a slot's longest run was stands in another hash, and is written only when a run is longer than
-- those before; up to more than 64 bytes, since Redis then keeps a hash table, and searches the
-- list that it keeps of shorter rows from its beginning.
-- Only failures cost a second command in a slot that has begun.
-- key, places: that row and that hash. outcome, wait, run: the numbers that count it, as '#7'.
-- waited, ran: microseconds.
local function count_ended(key, places, outcome, wait, run, waited, ran, reply)
  local slot = math.floor(clock[1] / 10)
  local ii = string.sub(100 + slot % 64, 2)
  -- a foreign value in place of these rows costs the count, and no worker its life
  local row = redis.pcall('BITFIELD', key,
    'INCRBY', 'i64', outcome, '1', 'INCRBY', 'i64', wait, '1', 'INCRBY', 'i64', run, '1',
    'INCRBY', 'i64', '#2' .. ii, '1', 'INCRBY', 'i64', '#3' .. ii, ran, 'GET', 'i64', '#1' .. ii,
    'GET', 'i64', '#4' .. ii, 'GET', 'i64', '#5' .. ii, 'GET', 'i64', '#6' .. ii)
  if row.err then return end
  local of, longest_wait, longest_run, longest = row[6], row[7], row[8], row[9]
  waited, ran = tonumber(waited), tonumber(ran)
  local has_failed = outcome == ENDED_FAILED or outcome == ENDED_TIMED_OUT
  if has_failed and of == slot then redis.pcall('BITFIELD', key, 'INCRBY', 'i64', '#7' .. ii, '1') end
  if of == slot and waited <= longest_wait and ran <= longest_run and waited + ran <= longest then
    return
  end
  if of ~= slot then
    longest_wait, longest_run, longest = 0, -1, 0
    redis.pcall('BITFIELD', key,
      'SET', 'i64', '#1' .. ii, slot, 'SET', 'i64', '#2' .. ii, '1',
      'SET', 'i64', '#3' .. ii, ran, 'SET', 'i64', '#7' .. ii, has_failed and '1' or '0')
  end
  redis.pcall('BITFIELD', key, 'SET', 'i64', '#4' .. ii, math.max(waited, longest_wait),
    'SET', 'i64', '#5' .. ii, math.max(ran, longest_run),
    'SET', 'i64', '#6' .. ii, math.max(waited + ran, longest))
  if ran <= longest_run then return end
  local ok, fields = pcall(cjson.decode, reply)
  if not ok or type(fields) ~= 'table' then fields = {} end
  local node, pod = fields.node, fields.pod
  local function short(text) return type(text) == 'string' and string.sub(text, 1, 100) or '' end
  local text = slot .. '\n' .. short(node) .. '\n' .. short(pod)
  redis.pcall('HSET', places, 'at' .. slot % 64, text .. string.rep('\n', 65 - #text))
end
