-- The fields of a reply, none where it is not ours.
local function decoded(reply)
  local ok, fields = pcall(cjson.decode, reply)
  return ok and type(fields) == 'table' and fields or {}
end
