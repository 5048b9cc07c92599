// SPDX-License-Identifier: BSD-2-Clause
// Stacks with names: a Stack is a list of Frames, innermost first, and FrameIssue says why a frame has no name or where
// callers may be missing. Symbolizer::user_stack() (symbolizer.hpp) makes a Stack of an event's addresses.
// Threads: plain values that own their strings, which may have any bytes: escape them before you print them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "usdt/address.hpp"

namespace usdt {
inline namespace v1 {

/// Tells how the callers of a process's function are found.
enum class StackMethod : std::uint8_t {
  /// The kernel follows the chain of frame pointers at the hit, and events are small. Functions that keep none lose
  /// their caller; where that may have happened, the stack says so
  /// (FrameIssue::callers_skipped).
  frame_pointers,
  /// Registers and a copy of the stack are recorded at the hit, and followed later by what the files say of their
  /// frames (.eh_frame, .debug_frame), as debuggers do.
  call_frame_info,
};

/// Tells why a frame has no name, why callers are missing before the next one, or why a stack ends.
enum class FrameIssue : std::uint8_t {
  none,
  // The address is known, and what is there is not:
  process_gone,     ///< the process had ended, or become another program, before its mappings could be read
  no_permission,    ///< its mappings may not be read
  not_mapped,       ///< nothing is mapped there
  no_file,          ///< code that is in no file (a JIT compiler's), and that no perf map names
  file_unreadable,  ///< the mapped file cannot be opened or is no ELF file; Frame::detail says why
  file_changed,     ///< the mapped file was written to since
  no_symbol,        ///< no symbol of the file has the address: it is stripped
  // No address of its own: between two frames.
  callers_skipped,   ///< the function before keeps no frame pointer there: its callers may be missing
  by_frame_pointer,  ///< no unwind information: the next one was found by the frame pointer, which may not be one
  // The end:
  depth_reached,  ///< as many frames as were asked for
  chain_ended,    ///< the chain of frame pointers, which need not be the outermost function
  copy_ended,     ///< the recorded copy of the stack
  no_rule,        ///< no unwind information, and no frame pointer that could be one
  lost_value,     ///< a value that the rule needs was not kept by the functions called, or is on another stack
  return_probe,   ///< the return address is a return probe's
  // No address of its own, about functions of scripts:
  script_late,    ///< it was not known yet at the hit where the process has its interpreter: none were recorded
  script_unread,  ///< further ones could not be followed: Frame::detail says why
  script_cut,     ///< there are more of them than were asked for
  script_alone,   ///< what follows are functions of scripts alone: the native ones between them are not known
  script_apart,   ///< what follows are functions of scripts that could not be placed among the native ones
  // A function of a script:
  script_changed,  ///< its code was freed, and its memory is another's, before its name could be read
  script_gone,     ///< the process ended before its name could be read
  script_unnamed,  ///< it is interpreted by this native function; its runtime names it if it is asked to: Frame::detail
  // Code of a JIT compiler:
  code_listed,    ///< as its perf map said at another time: other code may have been there at the hit
  code_replaced,  ///< other code was in its place at about that time, and may have run: Frame::detail names it
};

/// Tells how the code of a function came to be, where a runtime has several ways.
enum class CodeTier : std::uint8_t {
  unknown,      ///< the runtime does not tell, or has one way
  interpreted,  ///< by the runtime's loop over instructions of its own
  baseline,     ///< compiled at once, as it is written
  optimized,    ///< compiled by what was seen of its calls; functions that were inlined into it are not known
};
/// Returns "interpreted", "baseline" or "optimized"; empty for `unknown`.
[[nodiscard]] std::string_view to_string(CodeTier tier) noexcept;

/// Returns the reason in words: lower case, no full stop. Empty for `none`.
[[nodiscard]] std::string_view to_string(FrameIssue issue) noexcept;

/// Describes a function that was running, or says why there is none to show. Owns its strings, which come from files of
/// others: they may have any bytes.
struct Frame {
  ProcessAddr address = {};     ///< the hit's, or the one that is returned to; 0: nothing but an issue
  bool return_address = false;  ///< the call is the instruction before: function and line are looked up there
  bool kernel = false;          ///< an address of the kernel
  bool inlined = false;         ///< its code is part of the next frame's function, which has the same address
  std::string function =
      {};  ///< demangled, with parameters where it is C++ ("net::Server::handle(int)"); empty: unknown
  std::uint64_t distance = 0;  ///< bytes from the function's first instruction to `address`; inlined: of the whole
  std::string module = {};     ///< path of the file; of the kernel the module's name, empty: vmlinux
  std::string build_id = {};   ///< of the file, lower-case hex
  std::optional<FileOffset> offset = {};  ///< of `address` in the file
  /// Of a function of a script: its language ("python", "php", "ruby"). Such functions stand in place of the native one
  /// that ran them, the interpreter's loop, and have neither address nor module. Those of a JIT compiler ("javascript",
  /// "java") have an address: they are native functions, too.
  std::string language = {};
  std::string source = {};  ///< source file as the compiler was told; empty: not known
  std::uint32_t line = 0;   ///< from 1; 0: not known
  /// The line and column of `source` in which the function is defined, from 1, where its runtime says no more: not
  /// those that run. 0: not known.
  std::uint32_t definition_line = 0;
  std::uint32_t definition_column = 0;
  CodeTier tier = CodeTier::unknown;
  FrameIssue issue = FrameIssue::none;
  std::string detail = {};  ///< more about the issue
};

/// Holds a stack, innermost frame first. Inlined frames come before the function they are part of.
struct Stack {
  std::vector<Frame> frames = {};
  FrameIssue end = FrameIssue::none;  ///< none: the last frame is the outermost
};

}  // namespace v1
}  // namespace usdt
