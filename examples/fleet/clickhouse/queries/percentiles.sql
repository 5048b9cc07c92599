-- SPDX-License-Identifier: BSD-2-Clause
-- Percentiles of durations in the last day, by version, by host and by container, in seconds. A percentile is the upper
-- end of its bucket: at most 9.1 % too large and never too small, over however many hosts.
WITH
    (counts, share) -> arrayFirstIndex(c -> c >= share * arraySum(counts), arrayCumSum(counts)) AS place,
    (histogram, share) -> round(exp2((histogram.1[place(histogram.2, share)] + 1) / 8), 9) AS percentile
SELECT
    probe, by, value, spans, round(mean, 9) AS mean,
    percentile(merged, 0.5) AS p50, percentile(merged, 0.9) AS p90, percentile(merged, 0.99) AS p99, longest
FROM
(
    SELECT
        probe, pair.1 AS by, pair.2 AS value, countMerge(events) AS spans, sumMerge(total) / spans / 1e9 AS mean,
        sumMapMerge(durations) AS merged, maxMerge(longest) / 1e9 AS longest
    FROM usdt_minutes
    ARRAY JOIN [('all', ''), ('version', version), ('host', host), ('container', container)] AS pair
    WHERE minute >= now() - INTERVAL 1 DAY
    GROUP BY probe, by, value
)
ORDER BY probe, by, value
