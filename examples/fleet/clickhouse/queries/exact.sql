-- SPDX-License-Identifier: BSD-2-Clause
-- The same of the spans themselves, exact: the slower way, for as long as usdt_events has them.
SELECT probe, container, count() AS spans, quantilesExact(0.5, 0.9, 0.99)(duration) AS ns, max(duration) AS longest
FROM usdt_events
WHERE time >= now() - INTERVAL 1 DAY AND kind = 'span'
GROUP BY probe, container
ORDER BY probe, container
