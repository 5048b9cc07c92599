-- SPDX-License-Identifier: BSD-2-Clause
-- Batches of events that are here more than once: rows that have an equal within their batch.
SELECT
    host, boot, trace, seq, count() AS rows,
    count() - uniqExact(tuple(time, probe, pid, tid, cpu, duration, nums, args)) AS doubled
FROM usdt_events
GROUP BY host, boot, trace, seq
HAVING doubled > 0
ORDER BY doubled DESC
