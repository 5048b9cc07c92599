-- SPDX-License-Identifier: BSD-2-Clause
-- Batches that are not here although the trace has numbered them, of traces that have ended.
WITH
    ends AS
    (
        SELECT host, boot, trace, max(value) AS batches FROM usdt_ledger
        WHERE name = 'batches' AND last GROUP BY host, boot, trace
    ),
    seen AS
    (
        SELECT host, boot, trace, groupUniqArray(seq) AS numbers FROM
        (
            SELECT host, boot, trace, seq FROM usdt_events GROUP BY host, boot, trace, seq
            UNION ALL SELECT host, boot, trace, seq FROM usdt_tables GROUP BY host, boot, trace, seq
            UNION ALL SELECT host, boot, trace, seq FROM usdt_ledger GROUP BY host, boot, trace, seq
        )
        GROUP BY host, boot, trace
    )
SELECT host, boot, trace, batches, arrayFilter(n -> NOT has(numbers, n), range(1, batches + 1)) AS missing
FROM ends JOIN seen USING (host, boot, trace)
WHERE notEmpty(missing)
