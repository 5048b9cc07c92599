# SPDX-License-Identifier: BSD-2-Clause
"""A server of tests that takes insertions by HTTP as ClickHouse does."""

import collections
import contextlib
import gzip
import http.server
import json
import re
import socket
import threading
import urllib.parse

from harness import check_equal


class House:
    """Takes insertions as ClickHouse does, each token once. `answers` are (status, headers, body, takes) of the first posts, one
    each; `takes`: the rows are kept although the answer says otherwise. None: the connection ends without an answer."""

    def __init__(self, answers=(), port=0):
        self.answers, self.posts, self.rows, self.tokens = list(answers), [], collections.defaultdict(list), set()
        self.connections, house = [], self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                house.connections.append(self.connection)

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, headers, reply, takes = house.answers.pop(0) if house.answers else (200, {}, b"", True)
                url = urllib.parse.urlsplit(self.path)
                house.posts.append((url.path, dict(urllib.parse.parse_qsl(url.query, strict_parsing=True)), dict(self.headers)))
                if takes:
                    house.take(house.posts[-1][1], self.headers, body)
                if status is None:
                    self.close_connection = True
                    return
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.place = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

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

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def ledger(self, name):
        """The last number of this name, over all probes."""
        return sum(row["value"] for row in self.rows["usdt_ledger"] if row["name"] == name and row["last"])


def once(pairs):
    check_equal(len(pairs), len({name for name, _ in pairs}), f"each name once: {pairs}")
    return dict(pairs)
