# SPDX-License-Identifier: BSD-2-Clause
"""Lists and traces USDT probes of any process, functions of programs and of the kernel, by libusdt-c.so.0.

    for point in usdt.list("/usr/bin/python3.11"):
        print(point.full_name, point.signature)

    with usdt.Tracer("python:function__return", pids=4711) as tracer:
        for event in tracer:
            print(event.args)

    for answer in usdt.ask("python:gc__start ~~ python:gc__done", latency=True, by="pid", duration=10):
        print(answer)  # what usdt-trace answers, as dicts

    for event in usdt.Recording("pg.rec"):  # of usdt-trace --record, or of Tracer(record="pg.rec")
        print(event.args)

    provider = usdt.Provider("shop")  # probes of this process, by libusdt-provider.so.1
    sold = provider.probe("sold", item=str, price=float)
    sold("lamp", 49.9)

    @provider.span()
    def checkout(cart): ...

    with usdt.trace_context(trace_id, span_id):  # what this thread works for, for tracers
        ...
"""

from ._asking import Answers, ask, options
from ._counts import Counts
from ._errors import (Error, InvalidArgument, LimitReached, NoPermission, NotFound, NotSupported, SyntaxFault,
                      VerifierRefused)
from ._events import EnumValue, Event, TruncatedBytes, TruncatedText, Unreadable, Value
from ._points import Arg, Notice, Point, list  # noqa: A004 - usdt.list() is what it does
from ._provider import Probe, Provider, Span
from ._recording import Recording
from ._tables import Range, Row, Table
from ._trace_context import publish_trace_context, trace_context
from ._tracer import Overhead, Tracer, check_privilege, version

__all__ = ["Answers", "Arg", "Counts", "EnumValue", "Error", "Event", "InvalidArgument", "LimitReached", "NoPermission", "NotFound",
           "NotSupported", "Notice", "Overhead", "Point", "Probe", "Provider", "Range", "Recording", "Row", "Span",
           "SyntaxFault", "Table", "Tracer", "TruncatedBytes", "TruncatedText", "Unreadable", "Value", "VerifierRefused",
           "ask", "check_privilege", "list", "options", "publish_trace_context", "trace_context", "version"]
