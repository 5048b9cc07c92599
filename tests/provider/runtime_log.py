# SPDX-License-Identifier: BSD-2-Clause
"""What runtime-probes says it passed, and what usdt-trace showed of it; here and in guests of tests/vm."""

import collections
import json


def said(log):
    """The lists of each probe, in order."""
    probes = collections.defaultdict(list)
    for line in log.read_text().splitlines():
        name, values = line.split(" ", 1)
        probes[name].append(json.loads(values))
    return dict(probes)


def shown(result):
    """The same of a result of the harness."""
    return {name: [event["args"] for event in events] for name, events in result.by_name().items()}
