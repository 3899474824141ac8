-- Who samples a node for a queue: the first of its workers that asks, as long as that one lives. So the lease needs no
-- deadline of its own, and no call of its own: it is renewed by the heartbeat, and ends with it. Reapers drop the nodes
-- of dead workers.
-- Answer: nothing when another worker does, else how many nodes are sampled, how many requests run, how many were submitted
local function sampling(queues, samplers, workers, leases, counters, queue, node, worker, at)
  -- A key that is not ours must not stop the heartbeats of everybody.
  if node == '' or redis.pcall('HEXISTS', queues, queue) ~= 1 then return {} end
  local holder, submitted = redis.pcall('HGET', samplers, node), redis.pcall('HGET', counters, 'submitted')
  if type(holder) == 'table' or type(submitted) == 'table' then return {} end
  local function lives(name)
    local deadline = redis.call('ZSCORE', workers, name)
    return deadline and tonumber(deadline) >= at
  end
  if holder ~= worker then
    if holder and lives(holder) then return {} end
    redis.call('HSET', samplers, node, worker)
  end
  return {redis.call('HLEN', samplers), redis.call('ZCARD', leases),
    tonumber(submitted or '') or 0}
end
