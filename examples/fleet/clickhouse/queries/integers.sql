-- SPDX-License-Identifier: BSD-2-Clause
-- Hits by an integer argument: {name:String} is its name, as "arg0" or "size". What is asked often is worth a column:
-- ALTER TABLE usdt_events ADD COLUMN size Int64 MATERIALIZED nums['size'] CODEC(T64, ZSTD(1))
SELECT probe, intDiv(nums[{name:String}], 1000) * 1000 AS from_value, count() AS hits, sum(weight) AS estimated
FROM usdt_events
WHERE time >= now() - INTERVAL 1 DAY AND mapContains(nums, {name:String})
GROUP BY probe, from_value
ORDER BY hits DESC
LIMIT 20
