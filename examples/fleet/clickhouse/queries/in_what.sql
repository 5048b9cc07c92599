-- SPDX-License-Identifier: BSD-2-Clause
-- In what the spans and hits of one container, {container:String}, differ from those of all others of a probe,
-- {probe:String}: values of arguments and of columns by how much larger or smaller their share is. Integers from
-- 16 on are in powers of 2.
WITH events AS
(
    SELECT
        container = {container:String} AS own,
        arrayJoin(arrayConcat(
            [('version', toString(version)), ('host', toString(host)), ('comm', toString(comm)),
             ('cpu', toString(cpu))],
            arrayMap((k, v) -> (toString(k), v), mapKeys(args), mapValues(args)),
            arrayMap((k, v) -> (toString(k), if(abs(v) < 16, toString(v), concat('2^', toString(floor(log2(abs(v))))))),
                     mapKeys(nums), mapValues(nums)))) AS pair
    FROM usdt_events
    WHERE time >= now() - INTERVAL 1 DAY AND probe = {probe:String}
)
SELECT
    pair.1 AS what, pair.2 AS value, countIf(own) AS own_events, countIf(NOT own) AS other_events,
    round(own_events / sum(own_events) OVER (PARTITION BY what), 4) AS own_share,
    round(other_events / sum(other_events) OVER (PARTITION BY what), 4) AS other_share
FROM events
GROUP BY what, value
ORDER BY abs(own_share - other_share) DESC
LIMIT 20
