# SPDX-License-Identifier: BSD-2-Clause
"""Pages of metrics, read by Prometheus's client library and by protoc."""

import collections
import importlib

from harness import Skip, check
from messages import compiled


def read_text(page, module="prometheus_client.parser"):
    """{name: {labels: value}}, by the client library."""
    try:
        parser = importlib.import_module(module)
    except ImportError:
        raise Skip("no python3-prometheus-client") from None
    samples = collections.defaultdict(dict)
    for family in parser.text_string_to_metric_families(page):
        for sample in family.samples:
            labels = frozenset(sample.labels.items())
            check(labels not in samples[sample.name], f"{sample} is there twice")
            samples[sample.name][labels] = sample.value
    return samples


def read_open(page):
    return read_text(page, "prometheus_client.openmetrics.parser")


def read_protobuf(run, data):
    """{name: message}, by protoc."""
    messages, families = compiled(run.dir, "metrics"), {}
    while data:
        length = shift = 0
        while True:
            byte, data = data[0], data[1:]
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        family = messages.MetricFamily.FromString(data[:length])
        check(family.name not in families, f"{family.name} is there twice")
        families[family.name], data = family, data[length:]
    return families
