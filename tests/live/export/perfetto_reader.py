# SPDX-License-Identifier: BSD-2-Clause
"""Reads Perfetto's traces by protoc and Google's library, and draws them by the rules that its documents give
(docs/reference/synthetic-track-event.md, trace_packet.proto): what its trace processor would drop is an error here."""

import collections
import zlib

CLEARED, NEEDS = 1, 2
REALTIME, MONOTONIC = 1, 3

Slice = collections.namedtuple("Slice", "track name begin end args stack depth")
Instant = collections.namedtuple("Instant", "track name time args stack")
FlowEnd = collections.namedtuple("FlowEnd", "track name time is_last")


class Sequence:
    """What holds for the packets of one writer."""

    def __init__(self):
        self.names = {"event_names": {}, "debug_annotation_names": {}}
        self.track = self.clock = None
        self.clocks = {}  # number: [time, is_incremental]
        self.cleared = False


class Drawing:
    """Tracks with what is on them."""

    def __init__(self):
        self.tracks, self.slices, self.instants, self.counters = {}, [], [], collections.defaultdict(list)
        self.wall_offsets = []
        self.bytes_before_compression = 0
        self.flows = collections.defaultdict(list)  # number: FlowEnds in the order of time

    def thread_of(self, uuid):
        """The thread (pid, tid) of a track, maybe of one around it."""
        while not self.tracks[uuid].HasField("thread"):
            uuid = self.tracks[uuid].parent_uuid
            assert uuid in self.tracks, f"track {uuid} is described nowhere"
        return self.tracks[uuid].thread.pid, self.tracks[uuid].thread.tid


def packets_of(messages, data, drawing):
    trace = messages.Trace()
    trace.ParseFromString(data)
    for packet in trace.packet:
        if not packet.HasField("compressed_packets"):
            yield packet
            continue
        inner = zlib.decompress(packet.compressed_packets)
        drawing.bytes_before_compression += len(inner)
        yield from packets_of(messages, inner, drawing)


def value_of(annotation):
    if annotation.dict_entries:
        return {entry.name: value_of(entry) for entry in annotation.dict_entries}
    if annotation.array_values:
        return [value_of(element) for element in annotation.array_values]
    kind = annotation.WhichOneof("value")
    return getattr(annotation, kind) if kind else None


def time_of(packet, sequence):
    clock = packet.timestamp_clock_id or sequence.clock
    if clock == MONOTONIC:
        return packet.timestamp
    base = sequence.clocks[clock]
    if base[1]:
        base[0] += packet.timestamp
        return base[0]
    raise AssertionError(f"clock {clock} is not incremental")


def learn(packet, sequence, drawing):
    if packet.sequence_flags & CLEARED:
        sequence.__init__()
        sequence.cleared = True
    if packet.HasField("trace_packet_defaults"):
        sequence.clock = packet.trace_packet_defaults.timestamp_clock_id
        sequence.track = packet.trace_packet_defaults.track_event_defaults.track_uuid
    times = {clock.clock_id: clock for clock in packet.clock_snapshot.clocks}
    for number, clock in times.items():
        if number >= 64:
            assert clock.timestamp == times[MONOTONIC].timestamp
            sequence.clocks[number] = [clock.timestamp, clock.is_incremental]
    if REALTIME in times:
        drawing.wall_offsets.append(times[REALTIME].timestamp - times[MONOTONIC].timestamp)
    for kind, known in sequence.names.items():
        for text in getattr(packet.interned_data, kind):
            assert text.iid not in known, f"number {text.iid} has two texts"
            known[text.iid] = text.str.decode()
    if packet.HasField("track_descriptor"):
        described = packet.track_descriptor
        assert described.uuid and described.uuid not in drawing.tracks
        assert not described.parent_uuid or described.parent_uuid in drawing.tracks
        drawing.tracks[described.uuid] = described


def learn_flows(time, track, event, name, drawing):
    """A flow is bound to the slice that begins with its event, or to the instant; an end of a slice has none to bind it to."""
    for is_last, numbers in ((False, event.flow_ids), (True, event.terminating_flow_ids)):
        for number in numbers:
            assert event.type in (event.TYPE_SLICE_BEGIN, event.TYPE_INSTANT), f"flow {number} has no slice"
            drawing.flows[number].append(FlowEnd(track, name, time, is_last))


def draw(messages, data):
    """What a viewer would show of the trace; AssertionError for what it could not."""
    drawing, sequences, events = Drawing(), collections.defaultdict(Sequence), []
    for packet in packets_of(messages, data, drawing):
        sequence = sequences[packet.trusted_packet_sequence_id]
        learn(packet, sequence, drawing)
        if not packet.HasField("track_event"):
            continue
        assert packet.trusted_packet_sequence_id and packet.sequence_flags & NEEDS and sequence.cleared
        event = packet.track_event
        name = event.name or (sequence.names["event_names"][event.name_iid] if event.name_iid else None)
        args = {}
        for annotation in event.debug_annotations:
            label = sequence.names["debug_annotation_names"][annotation.name_iid]
            assert label not in args, f"two values are called {label}"
            args[label] = value_of(annotation)
        stack = [frame.function_name for frame in event.callstack.frames]
        track = event.track_uuid or sequence.track
        assert track in drawing.tracks, f"track {track} is not described before its events"
        events.append((time_of(packet, sequence), track, event, name, args, stack))
    events.sort(key=lambda event: event[0])  # stable, as the trace processor's is
    open_slices = collections.defaultdict(list)
    for time, track, event, name, args, stack in events:
        learn_flows(time, track, event, name, drawing)
        if event.type == event.TYPE_SLICE_BEGIN:
            open_slices[track].append((name, time, args, stack))
        elif event.type == event.TYPE_SLICE_END:
            assert open_slices[track], f"a slice of track {track} ends that has not begun"
            begun = open_slices[track].pop()
            drawing.slices.append(Slice(track, begun[0], begun[1], time, begun[2], begun[3], len(open_slices[track])))
        elif event.type == event.TYPE_INSTANT:
            drawing.instants.append(Instant(track, name, time, args, stack))
        elif event.type == event.TYPE_COUNTER:
            drawing.counters[drawing.tracks[track].name].append((time, event.counter_value))
    assert not any(open_slices.values()), "slices that do not end"
    for number, ends in drawing.flows.items():
        assert len(ends) >= 2, f"flow {number} leads nowhere"
        assert [end.is_last for end in ends] == [False] * (len(ends) - 1) + [True], f"flow {number} goes on behind its end"
    return drawing
