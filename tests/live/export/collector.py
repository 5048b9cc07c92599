# SPDX-License-Identifier: BSD-2-Clause
"""A collector of OpenTelemetry for tests, which reads what it is sent by protoc."""

import gzip
import time

from harness import check_equal
from messages import compiled
from post_server import PostServer


def value_of(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(each) for each in value.array_value.values]
    if kind == "kvlist_value":
        return attributes_of(value.kvlist_value.values)
    return getattr(value, kind)


def attributes_of(pairs):
    names = [pair.key for pair in pairs]
    check_equal(len(names), len(set(names)), f"each name once: {names}")
    return {pair.key: value_of(pair.value) for pair in pairs}


class Collector(PostServer):
    """Takes what is posted; `answers` are (status, headers, body) of the first posts, one each, and 200 after that. None: the
    connection is closed without an answer; bytes: they are the answer, whatever they are."""

    def __init__(self, run, answers=(), slow=0.0, port=0):
        self.messages, self.answers, self.posts, self.kept, self.slow = compiled(run.dir, "otlp"), list(answers), [], [], slow
        super().__init__(port)

    def answer(self, path, headers, body):
        time.sleep(self.slow)
        answer = self.answers.pop(0) if self.answers else (200, {}, b"")
        status = answer[0] if isinstance(answer, tuple) else answer
        self.posts.append((time.monotonic(), path, status))
        if status == 200:
            self.keep(path, headers, body)
        return answer

    def keep(self, path, headers, body):
        check_equal((headers["Content-Type"], headers["Content-Encoding"]), ("application/x-protobuf", "gzip"), "headers")
        self.kept.append((path, gzip.decompress(body)))

    def items(self, path, message, of_scope, kept=None):
        """(resource, item) of all messages to `path`."""
        found = []
        for at, body in self.kept if kept is None else kept:
            if at != path:
                continue
            for resource in message.FromString(body).resources:
                for scope in resource.scopes:
                    check_equal(scope.scope.name, "usdt", "the scope")
                    found += [(attributes_of(resource.resource.attributes), item) for item in getattr(scope, of_scope)]
        return found

    def spans(self):
        return self.items("/v1/traces", self.messages.ExportTraces, "spans")

    def logs(self, kept=None):
        return self.items("/v1/logs", self.messages.ExportLogs, "logs", kept)

    def take_logs(self):
        """Those that came since the last call, which are kept no longer."""
        kept = [self.kept.pop(0) for _ in range(len(self.kept))]
        return self.logs(kept)

    def metrics(self):
        """The last of each name."""
        return {metric.name: metric for _, metric in self.items("/v1/metrics", self.messages.ExportMetrics, "metrics")}
