-- What happened in the last minutes, in a ring of 64 slots of ten seconds, two fields each in one hash. A slot that was
-- last written a turn of the ring ago is begun anew, so nothing has to expire. Packed, since this is the hot path:
-- unpacking and packing costs a third of writing the numbers as text. model/time_slots.py reads them.
--   <i>   slot, requests ended, their run times added up, longest wait, run and total in microseconds; then the node,
--         a line's end and the pod of the longest run, and line's ends up to 65 bytes.   a<i>  slot, requests submitted
-- Durations are those of the buckets, so within 1 %.
local slot = math.floor(clock[1] / 10)
local function arrived(queue, count)
  local key, field = OWN .. 'queue:' .. queue .. ':slots', 'a' .. slot % 64
  local row = redis.call('HGET', key, field)
  if row and #row == 16 then
    local of, before = struct.unpack('<dd', row)
    if of == slot then count = count + before end
  end
  redis.call('HSET', key, field, struct.pack('<dd', slot, count))
end
-- Filled up to more than 64 bytes a row: then Redis keeps a hash table. The list that it keeps of shorter ones is searched
-- from its beginning, twice a request, which costs 1.5 us once the ring is full.
local function place(reply)
  local ok, row = pcall(cjson.decode, reply)
  if not ok or type(row) ~= 'table' then row = {} end
  local node, pod = row.node, row.pod
  local text = (type(node) == 'string' and string.sub(node, 1, 100) or '') .. '\n'
    .. (type(pod) == 'string' and string.sub(pod, 1, 100) or '')
  return text .. string.rep('\n', 17 - #text)
end
local function ended(queue, wait_bucket, run_bucket, reply)
  local key, field = OWN .. 'queue:' .. queue .. ':slots', slot % 64
  local of, count, sum, wait, run, total, where = slot, 0, 0, 0, 0, 0, nil
  local row = redis.call('HGET', key, field)
  if row and #row < 48 then row = false end -- not one of ours: anybody may write to Redis
  if row then
    of, count, sum, wait, run, total = struct.unpack('<dddddd', row)
    if of ~= slot then row, count, sum, wait, run, total = false, 0, 0, 0, 0, 0 end
  end
  local waited, ran = 1.02 ^ (wait_bucket + 0.5), 1.02 ^ (run_bucket + 0.5)
  if waited > wait then wait = waited end
  if waited + ran > total then total = waited + ran end
  if ran > run then run, where = ran, place(reply) end
  redis.call('HSET', key, field, struct.pack('<dddddd', slot, count + 1, sum + ran, wait, run, total)
    .. (where or string.sub(row, 49)))
end
