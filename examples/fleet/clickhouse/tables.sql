-- SPDX-License-Identifier: BSD-2-Clause
-- The tables that `usdt-trace --export clickhouse=http://HOST:8123/DATABASE` inserts into, for one server:
--
--     clickhouse-client --database DATABASE --multiquery < tables.sql
--
-- docs/fleet.md explains them. Times are UTC. (host, boot, trace, seq) says by which batch a row came: the kernel's
-- id of the boot, a random number for each trace, and a number for each batch of it, from 1 on without a gap.

-- Hits and spans: one table, since most questions are about both. `duration` is in nanoseconds, 0 for a hit.
CREATE TABLE IF NOT EXISTS usdt_events
(
    time      DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    duration  UInt64 CODEC(T64, ZSTD(1)),
    kind      Enum8('hit' = 0, 'span' = 1, 'in_flight' = 2),
    probe     LowCardinality(String),
    service   LowCardinality(String),
    version   LowCardinality(String),
    host      LowCardinality(String),
    container LowCardinality(String),
    question  LowCardinality(String),
    pid       UInt32 CODEC(T64, ZSTD(1)),
    tid       UInt32 CODEC(T64, ZSTD(1)),
    cpu       UInt16 CODEC(T64, ZSTD(1)),
    comm      LowCardinality(String),
    -- So many hits does this one stand for (--sample, --max-overhead).
    weight    Float32 DEFAULT 1 CODEC(ZSTD(1)),
    -- Integers of 64 bits with a sign by name; all else as text, what lies within each other as JSON, and as
    -- "NAME.error" why a value could not be read.
    nums      Map(LowCardinality(String), Int64) CODEC(ZSTD(1)),
    args      Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    ustack    Array(LowCardinality(String)) CODEC(ZSTD(1)),
    kstack    Array(LowCardinality(String)) CODEC(ZSTD(1)),
    -- Of programs whose probes have one, shown as an argument of this name.
    trace_id  String MATERIALIZED args['trace_id'] CODEC(ZSTD(1)),
    boot      LowCardinality(String),
    trace     UInt64 CODEC(ZSTD(1)),
    seq       UInt64 CODEC(Delta, ZSTD(1)),
    INDEX trace_ids trace_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toDate(time)
ORDER BY (probe, time)
TTL toDateTime(time) + INTERVAL 14 DAY
-- A batch that is sent again is known by its token among the last so many.
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1;

-- Rows of --by, --hist, --latency: what they came to since the trace began, every ten seconds and, `last`, at the
-- end. A look that is lost or doubled changes nothing, since each has all of those before.
CREATE TABLE IF NOT EXISTS usdt_tables
(
    time           DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    last           Bool,
    keys           Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    count          UInt64 CODEC(T64, ZSTD(1)),
    sum            Nullable(Float64) CODEC(ZSTD(1)),
    min            Nullable(Float64) CODEC(ZSTD(1)),
    max            Nullable(Float64) CODEC(ZSTD(1)),
    distinct       Nullable(UInt64) CODEC(ZSTD(1)),
    unit           LowCardinality(String),
    -- Histograms in the one layout (docs/fleet.md): index i has what is above 2^(i / 2^scale) and up to
    -- 2^((i + 1) / 2^scale), of durations in seconds.
    scale          UInt8,
    zeros          UInt64 CODEC(T64, ZSTD(1)),
    positive_index Array(Int32) CODEC(ZSTD(1)),
    positive_count Array(UInt64) CODEC(ZSTD(1)),
    negative_index Array(Int32) CODEC(ZSTD(1)),
    negative_count Array(UInt64) CODEC(ZSTD(1)),
    -- Those of --lhist: how many are up to each bound and above the one before.
    bounds         Array(Float64) CODEC(ZSTD(1)),
    bound_counts   Array(UInt64) CODEC(ZSTD(1)),
    service        LowCardinality(String),
    version        LowCardinality(String),
    host           LowCardinality(String),
    container      LowCardinality(String),
    question       LowCardinality(String),
    boot           LowCardinality(String),
    trace          UInt64 CODEC(ZSTD(1)),
    seq            UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toDate(time)
ORDER BY (question, service, host, trace, time)
TTL toDateTime(time) + INTERVAL 30 DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1;

-- What became of every hit since the trace began, by probe: role 'hits', 'events', 'lost' and 'left_out' with the
-- reason as `name`; of spans 'pairing': 'paired', 'in_flight', 'unmatched', 'unpaired'; and 'other': 'missed', and of
-- all probes (''), so far, 'rows' of usdt_events and 'batches' of all tables. What is 0 has no row.
CREATE TABLE IF NOT EXISTS usdt_ledger
(
    time      DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    last      Bool,
    probe     LowCardinality(String),
    role      LowCardinality(String),
    name      LowCardinality(String),
    value     UInt64 CODEC(T64, ZSTD(1)),
    service   LowCardinality(String),
    version   LowCardinality(String),
    host      LowCardinality(String),
    container LowCardinality(String),
    question  LowCardinality(String),
    boot      LowCardinality(String),
    trace     UInt64 CODEC(ZSTD(1)),
    seq       UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toDate(time)
ORDER BY (host, trace, time)
TTL toDateTime(time) + INTERVAL 90 DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1;

-- Durations by minute, as histograms that add up over hosts and time without an error of their own.
CREATE TABLE IF NOT EXISTS usdt_minutes
(
    minute    DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
    probe     LowCardinality(String),
    service   LowCardinality(String),
    version   LowCardinality(String),
    host      LowCardinality(String),
    container LowCardinality(String),
    question  LowCardinality(String),
    events    AggregateFunction(count),
    total     AggregateFunction(sum, UInt64),
    longest   AggregateFunction(max, UInt64),
    durations AggregateFunction(sumMap, Array(Int32), Array(UInt64))
)
ENGINE = AggregatingMergeTree
PARTITION BY toDate(minute)
ORDER BY (probe, service, version, host, container, question, minute)
TTL minute + INTERVAL 90 DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS usdt_minutes_view TO usdt_minutes AS
SELECT
    toStartOfMinute(time) AS minute, probe, service, version, host, container, question,
    countState() AS events,
    sumState(duration) AS total,
    maxState(duration) AS longest,
    -- The layout of histograms at scale 3.
    sumMapState([toInt32(ceil(log2(duration / 1e9) * 8) - 1)], [toUInt64(1)]) AS durations
FROM usdt_events
WHERE duration > 0 AND kind = 'span'
GROUP BY minute, probe, service, version, host, container, question;
