-- SPDX-License-Identifier: BSD-2-Clause
-- Hits by an integer argument in powers of 2: {name:String} is its name, as "arg0" or "size". What is asked often is
-- worth a column:
-- ALTER TABLE usdt_events ADD COLUMN size Int64 MATERIALIZED nums['size'] CODEC(T64, ZSTD(1))
WITH nums[{name:String}] AS value
SELECT
    probe, if(value = 0, 0, sign(value) * exp2(floor(log2(abs(value))))) AS from_power_of_2,
    count() AS hits, sum(weight) AS estimated
FROM usdt_events
WHERE time >= now() - INTERVAL 1 DAY AND mapContains(nums, {name:String})
GROUP BY probe, from_power_of_2
ORDER BY hits DESC
LIMIT 20
