// SPDX-License-Identifier: BSD-2-Clause
// Forward declarations of the public classes, structs and enums: for headers of your own that name these types by
// pointer or reference and need not include what defines them.
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
