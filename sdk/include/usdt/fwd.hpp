// SPDX-License-Identifier: BSD-2-Clause
// Names for headers that only pass things on. usdt.hpp includes it, so that it stays true.
#pragma once

#include <cstdint>

namespace usdt {
inline namespace v1 {

class ArgDecoder;
class BpfObject;
class ElfFile;
class Event;
class KernelSelection;
class KernelSymbols;
class Link;
class LoadedObject;
class OwnedEvent;
class RingReader;
class Symbolizer;
class Tracer;

struct Arg;
struct AttachPlan;
struct Error;
struct EventLayout;
struct Frame;
struct FeatureState;
struct KernelFacts;
struct KernelPattern;
struct LoadOptions;
struct PlanOptions;
struct ProbeCounts;
struct ProbeFile;
struct ProbePattern;
struct Selection;
struct Site;
struct Stack;
struct TargetFile;
struct TraceOptions;

enum class Answer : std::uint8_t;
enum class Backend : std::uint8_t;
enum class Carrier : std::uint8_t;
enum class ErrorKind : std::uint8_t;
enum class Feature : std::uint8_t;
enum class Machine : std::uint8_t;

}  // namespace v1
}  // namespace usdt
