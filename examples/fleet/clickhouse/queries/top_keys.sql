-- SPDX-License-Identifier: BSD-2-Clause
-- The keys with most hits over all hosts, by the last look that there is of each trace: a look that was lost or came
-- twice changes nothing.
WITH looks AS
(
    SELECT question, service, trace, max(time) AS newest FROM usdt_tables
    WHERE time >= now() - INTERVAL 1 DAY GROUP BY question, service, trace
)
SELECT
    question, service, keys, uniqExact(host) AS hosts, sum(count) AS hits, sum(sum) AS total, max(max) AS most,
    sumMap(positive_index, positive_count) AS histogram
FROM (SELECT DISTINCT * FROM usdt_tables WHERE (question, service, trace, time) IN looks)
GROUP BY question, service, keys
ORDER BY hits DESC
LIMIT 20
