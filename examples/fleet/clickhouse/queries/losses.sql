-- SPDX-License-Identifier: BSD-2-Clause
-- What each trace has lost, by reason, as its last ledger says; and events that it has given and that are not here:
-- refused, lost on the way, or on the way yet ('not_here'; below 0: they are here more than once).
WITH
    last_looks AS (SELECT host, trace, max(time) AS newest FROM usdt_ledger GROUP BY host, trace),
    newest AS (SELECT DISTINCT * FROM usdt_ledger WHERE (host, trace, time) IN last_looks),
    given AS (SELECT host, boot, trace, value AS events FROM newest WHERE role = 'other' AND name = 'rows'),
    here AS (SELECT host, boot, trace, count() AS events FROM usdt_events GROUP BY host, boot, trace)
SELECT host, trace, name AS reason, toInt64(sum(value)) AS hits
FROM newest WHERE role = 'lost' GROUP BY host, trace, name
UNION ALL
SELECT given.host, given.trace, 'not_here', toInt64(given.events) - toInt64(here.events) AS hits
FROM given LEFT JOIN here ON given.host = here.host AND given.boot = here.boot AND given.trace = here.trace
WHERE hits != 0
ORDER BY hits DESC
