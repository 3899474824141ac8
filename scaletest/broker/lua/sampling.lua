-- Lease the sampling of a node for a queue to the first worker that asks, as long as it lives. So
-- the lease needs no deadline and no call of its own: the heartbeat renews it. Reapers drop the
-- nodes of dead workers.
-- Answer: nothing when another worker does, else how many nodes are sampled, how many requests run,
--         how many were submitted
local function sampling(queues, samplers, workers, leases, counters, queue, node, worker, at)
  -- A foreign key must not stop all heartbeats.
  if node == '' or redis.pcall('HEXISTS', queues, queue) ~= 1 then return {} end
  local holder, submitted = redis.pcall('HGET', samplers, node),
    redis.pcall('HGET', counters, 'submitted')
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
