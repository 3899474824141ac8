-- Read the state of some workers. Changes nothing.
-- ARGV names of workers
-- Answer: a row of each, as of worker_row.lua
--@include worker_row
local rows = {}
for i, worker in ipairs(ARGV) do rows[i] = worker_row(worker) end
return rows
