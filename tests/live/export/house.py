# SPDX-License-Identifier: BSD-2-Clause
"""A server of tests that takes insertions by HTTP as ClickHouse does."""

import collections
import gzip
import io
import json
import re
import struct
import urllib.parse

from harness import check_equal
from post_server import PostServer


class House(PostServer):
    """Takes insertions as ClickHouse does, each token once. `answers` are (status, headers, body, takes) of the first posts, one
    each; `takes`: the rows are kept although the answer says otherwise. None: the connection ends without an answer; bytes in
    place of a status are the answer, whatever they are."""

    def __init__(self, answers=(), port=0):
        self.answers, self.posts, self.rows, self.tokens = list(answers), [], collections.defaultdict(list), set()
        self.forms = set()
        super().__init__(port)

    def answer(self, path, headers, body):
        status, own, reply, takes = self.answers.pop(0) if self.answers else (200, {}, b"", True)
        url = urllib.parse.urlsplit(path)
        self.posts.append((url.path, dict(urllib.parse.parse_qsl(url.query, strict_parsing=True)), dict(headers)))
        if takes:
            self.take(self.posts[-1][1], headers, body)
        return (status, own, reply) if isinstance(status, int) else status

    def take(self, query, headers, body):
        check_equal(headers["Content-Encoding"], "gzip", "it is deflated")
        table, form = re.fullmatch(r"INSERT INTO (usdt_\w+) FORMAT (JSONEachRow|RowBinaryWithNamesAndTypes)", query["query"]).groups()
        self.forms.add(form)
        token = query.get("insert_deduplication_token")
        if token in self.tokens:
            return
        self.tokens.add(token)
        for row in (json_rows if form == "JSONEachRow" else binary_rows)(gzip.decompress(body)):
            if token is not None:
                check_equal(token, f"{row['host']}-{row['boot']}-{row['trace']}-{row['seq']}", "the batch by its rows")
            self.rows[table].append(row)

    def ledger(self, name):
        """The last number of this name, over all probes."""
        return sum(row["value"] for row in self.rows["usdt_ledger"] if row["name"] == name and row["last"])


def once(pairs):
    check_equal(len(pairs), len({name for name, _ in pairs}), f"each name once: {pairs}")
    return dict(pairs)


def json_rows(body):
    return [json.loads(line, object_pairs_hook=once) for line in body.decode().splitlines()]


NUMBERS = {"UInt8": "<B", "UInt16": "<H", "UInt32": "<I", "UInt64": "<Q", "Int32": "<i", "Int64": "<q", "Float32": "<f", "Float64": "<d"}


def binary_rows(body):
    """Reads RowBinaryWithNamesAndTypes as clickhouse.com/docs/reference/formats/RowBinary has it. Reals that JSON does not have are
    the texts that JSONEachRow has for them."""
    data = io.BytesIO(body)

    def length():
        value = shift = 0
        while True:
            byte = data.read(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def text():
        return data.read(length()).decode()

    def value(kind):
        outer, inner = (re.fullmatch(r"(Nullable|Array|Map|LowCardinality)\((.*)\)", kind) or re.fullmatch("()(.*)", kind)).groups()
        if outer == "Nullable":
            return None if data.read(1) == b"\1" else value(inner)
        if outer == "LowCardinality":
            return value(inner)
        if outer == "Array":
            return [value(inner) for _ in range(length())]
        if outer == "Map":
            key, item = inner.rsplit(", ", 1)
            return once([(value(key), value(item)) for _ in range(length())])
        if kind == "String":
            return text()
        if kind == "Bool":
            return data.read(1) == b"\1"
        if kind.startswith("Enum8"):
            return dict((int(number), name) for name, number in re.findall(r"'(\w+)' = (\d+)", kind))[data.read(1)[0]]
        if kind.startswith("DateTime64(9"):
            kind = "Int64"
        number = struct.unpack(NUMBERS[kind], data.read(struct.calcsize(NUMBERS[kind])))[0]
        return str(number) if number in (float("inf"), float("-inf")) or number != number else number

    count = length()
    names, kinds = [text() for _ in range(count)], [text() for _ in range(count)]
    rows = []
    while data.tell() < len(body):
        rows.append(once([(name, value(kind)) for name, kind in zip(names, kinds)]))
    return rows
