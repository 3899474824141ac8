-- Find requests that are cancelled and wait in no queue: those of RQ's scheduler are deleted, and
-- those that run are not retried.
-- KEYS 1 rq:scheduled:<q>  2 leases
-- ARGV request ids
-- Answer: {how many were deleted, then id and worker of each that runs}
local call = redis.call
local scheduled, leases = KEYS[1], KEYS[2]
local wanted, deleted, answer = {}, 0, {0}
for _, id in ipairs(ARGV) do
  if call('ZREM', scheduled, id) == 1 then
    deleted = deleted + call('UNLINK', JOB .. id)
  else
    wanted[id] = true
  end
end
-- as many as there are workers
for _, lease in ipairs(next(wanted) and call('ZRANGE', leases, 0, -1) or {}) do
  local id, worker = string.match(lease, '^([^:]+):%d+:(.+)$')
  if id and wanted[id] then
    if call('HEXISTS', JOB .. id, 'retries_left') == 1 then
      call('HSET', JOB .. id, 'retries_left', '0')
    end
    answer[#answer + 1] = id
    answer[#answer + 1] = worker
  end
end
answer[1] = deleted
return answer
