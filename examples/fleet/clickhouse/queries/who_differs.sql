-- SPDX-License-Identifier: BSD-2-Clause
-- Which container differs from all others of its probe, and how far: the distribution of its durations against that
-- of the rest. `ks` is the largest distance of the two cumulative distributions (Kolmogorov, Smirnov), from 0 to 1: a
-- few calls that took very long change little of it. What chance alone does is below `chance` in 99 of 100 cases,
-- which counts against a container with few spans. `octaves` is by how many powers of 2 its durations have to move to
-- be as those of the rest (the earth mover's distance), and `slower` the same with a sign: 1 is twice as slow. For
-- hosts or versions put these in the place of `container`.
WITH
    members AS
    (
        SELECT probe, container AS member, sumMapMerge(durations) AS histogram
        FROM usdt_minutes WHERE minute >= now() - INTERVAL 1 DAY GROUP BY probe, member
    ),
    wholes AS (SELECT probe, sumMap(histogram.1, histogram.2) AS whole FROM members GROUP BY probe),
    counts AS
    (
        SELECT
            probe, member,
            range(arrayMin(whole.1), arrayMax(whole.1) + 1) AS axis,
            CAST((whole.1, whole.2), 'Map(Int32, UInt64)') AS all_by_index,
            CAST((histogram.1, histogram.2), 'Map(Int32, UInt64)') AS own_by_index,
            arrayCumSum(arrayMap(i -> own_by_index[i], axis)) AS own,
            arrayCumSum(arrayMap(i -> all_by_index[i] - own_by_index[i], axis)) AS others
        FROM members JOIN wholes USING (probe)
    ),
    compared AS
    (
        SELECT
            probe, member, own[-1] AS spans, others[-1] AS others_spans,
            arrayMap((o, m) -> o / others_spans - m / spans, others, own) AS distances
        FROM counts WHERE own[-1] > 0 AND others[-1] > 0
    )
SELECT
    probe, member, spans, others_spans,
    round(arrayMax(d -> abs(d), distances), 3) AS ks,
    round(1.63 * sqrt(1 / spans + 1 / others_spans), 3) AS chance,
    round(arraySum(d -> abs(d), distances) / 8, 3) AS octaves,
    round(arraySum(distances) / 8, 3) AS slower
FROM compared
ORDER BY ks - chance DESC, octaves DESC
LIMIT 20
