# SPDX-License-Identifier: BSD-2-Clause
"""A collector of OpenTelemetry for tests, which reads what it is sent by protobuf's own reader, of JSON, too."""

import base64
import collections
import gzip
import json
import re
import time

from harness import check, check_equal
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


# Fields of 64 bits, which are text, and those of bytes, each with its size.
WIDE = {"intValue", "asInt", "count", "zeroCount", "bucketCounts", "timeUnixNano", "startTimeUnixNano", "endTimeUnixNano",
        "observedTimeUnixNano"}
IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}


def of_proto3(name, value):
    """What OTLP has in JSON, as proto3's JSON has it: identifiers in base64. All else is alike, and stricter than readers are."""
    check(re.fullmatch("([a-z]+([A-Z][a-z]+)*)?", name), f"a name in lowerCamelCase: {name}")
    if isinstance(value, dict):
        return {inner: of_proto3(inner, each) for inner, each in value.items()}
    if isinstance(value, list):
        return [of_proto3(name, each) for each in value]
    if name in IDS:
        check(re.fullmatch(f"[0-9a-f]{{{2 * IDS[name]}}}", value), f"{name}: {value}")
        return base64.b64encode(bytes.fromhex(value)).decode()
    if name in WIDE:
        check(isinstance(value, str) and re.fullmatch("-?[0-9]+", value), f"64 bits as text: {name} {value}")
    return value


def pairs_of(pairs):
    check_equal([name for name, count in collections.Counter(name for name, _ in pairs).items() if count > 1], [], "each member once")
    return dict(pairs)


def read_message(message, kind, body):
    """A message, of its bytes or its JSON."""
    if kind == "application/x-protobuf":
        return message.FromString(body)
    from google.protobuf import json_format  # not everybody has it
    return json_format.ParseDict(of_proto3("", json.loads(body, object_pairs_hook=pairs_of)), message())


def without_chance(message):
    """A message without what differs from one replay to the next: identifiers, and when it was sent."""
    is_point = message.DESCRIPTOR.name.endswith("Point")
    for field, value in list(message.ListFields()):
        is_time = is_point and field.name in ("start", "time", "start_time_unix_nano", "time_unix_nano")
        if is_time or field.name in ("trace_id", "span_id", "observed_time_unix_nano"):
            message.ClearField(field.name)
        elif field.message_type is not None:
            for each in value if field.label == field.LABEL_REPEATED else [value]:
                without_chance(each)
    return message


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
        kind = headers["Content-Type"]
        check_equal((kind in ("application/x-protobuf", "application/json"), headers["Content-Encoding"]), (True, "gzip"), "headers")
        self.kept.append((path, kind, gzip.decompress(body)))

    def items(self, path, message, of_scope, kept=None):
        """(resource, item) of all messages to `path`."""
        found = []
        for at, kind, body in self.kept if kept is None else kept:
            if at != path:
                continue
            for resource in read_message(message, kind, body).resources:
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

    def metrics_and_resources(self):
        return self.items("/v1/metrics", self.messages.ExportMetrics, "metrics")

    def metrics(self):
        """The last of each name."""
        return {metric.name: metric for _, metric in self.metrics_and_resources()}
