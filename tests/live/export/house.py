# SPDX-License-Identifier: BSD-2-Clause
"""A server of tests that takes insertions by HTTP as ClickHouse does."""

import collections
import gzip
import json
import re
import urllib.parse

from harness import check_equal
from post_server import PostServer


class House(PostServer):
    """Takes insertions as ClickHouse does, each token once. `answers` are (status, headers, body, takes) of the first posts, one
    each; `takes`: the rows are kept although the answer says otherwise. None: the connection ends without an answer; bytes in
    place of a status are the answer, whatever they are."""

    def __init__(self, answers=(), port=0):
        self.answers, self.posts, self.rows, self.tokens = list(answers), [], collections.defaultdict(list), set()
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
        table = re.fullmatch(r"INSERT INTO (usdt_\w+) FORMAT JSONEachRow", query["query"])[1]
        token = query.get("insert_deduplication_token")
        if token in self.tokens:
            return
        self.tokens.add(token)
        for line in gzip.decompress(body).decode().splitlines():
            row = json.loads(line, object_pairs_hook=once)
            if token is not None:
                check_equal(token, f"{row['host']}-{row['boot']}-{row['trace']}-{row['seq']}", "the batch by its rows")
            self.rows[table].append(row)

    def ledger(self, name):
        """The last number of this name, over all probes."""
        return sum(row["value"] for row in self.rows["usdt_ledger"] if row["name"] == name and row["last"])


def once(pairs):
    check_equal(len(pairs), len({name for name, _ in pairs}), f"each name once: {pairs}")
    return dict(pairs)
