-- SPDX-License-Identifier: BSD-2-Clause
-- Batches of events that are here more than once. The ledger's events less the rows of other batches says how many rows
-- one has; without the ledger: a row that has an equal in all columns.
SELECT host, boot, trace, seq, count() AS rows, count() - uniqExact(tuple(time, probe, pid, tid, cpu, duration, nums, args)) AS doubled
FROM usdt_events
GROUP BY host, boot, trace, seq
HAVING doubled > 0
ORDER BY doubled DESC
