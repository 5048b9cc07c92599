-- SPDX-License-Identifier: BSD-2-Clause
-- lua-probes fibonacci.lua [N]: says its pid, waits for a line, and calls.
local result = usdt.probe("result", "i64 n, f64 ratio, str text")

local function fib(n)
  if n < 2 then return n end
  local before = fib(n - 2)
  return before + fib(n - 1)
end

function greet(name)
  return "hello, " .. name
end

local stat = assert(io.open("/proc/self/stat"))
print(stat:read("n"))
io.stdout:flush()
io.read()
local n = tonumber(... or 10)
local a, b = fib(n), fib(n - 1)
result(a, a / b, greet("lua"))
