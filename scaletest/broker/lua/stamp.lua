-- A time in microseconds as RQ writes it: 2026-01-31T23:59:59.123456Z. Civil date from days after
-- Howard Hinnant.
local function stamp(at)
  local seconds = math.floor(at / 1000000)
  local days = math.floor(seconds / 86400)
  local left = seconds - days * 86400
  local z = days + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local leap_days = math.floor(doe / 1460) - math.floor(doe / 36524) + math.floor(doe / 146096)
  local yoe = math.floor((doe - leap_days) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local day = doy - math.floor((153 * mp + 2) / 5) + 1
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%06dZ', year, month, day,
    math.floor(left / 3600), math.floor(left / 60) % 60, left % 60, at - seconds * 1000000)
end
