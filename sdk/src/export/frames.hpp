// SPDX-License-Identifier: BSD-2-Clause
// Frames of stacks, as they are shown.
#pragma once

#include <string>
#include <vector>

#include "io/json.hpp"
#include "usdt/stack.hpp"

namespace usdt::exports {

/// Why a frame has no name: the issue, and what more is known of it.
[[nodiscard]] std::string issue_text(const Frame& frame);
/// "handle(int)+0x1a at server.cc:42 (/usr/bin/server)"; a function of the kernel: "vfs_read+0x1a",
/// "nft_do_chain+0x40 [nf_tables]"; the address of one without a name.
[[nodiscard]] std::string frame_text(const Frame& frame);
/// The function alone: "handle(int)", "libfoo.so+0x1234"; in brackets why there is none: "[no symbol ...]".
[[nodiscard]] std::string function_text(const Frame& frame);
/// One for each line, and why the stack ends where it does, unless as many frames were asked for.
[[nodiscard]] std::vector<std::string> frame_texts(const Stack& stack);
/// The frames as a JSON array (docs/json.md).
void write_frames(io::JsonWriter& json, const Stack& stack);
/// Tells which frames are marked behind their names: those of the kernel ("_[k]") and inlined ones ("_[i]"); and code
/// that is in no file, a JIT compiler's ("_[j]").
enum class FoldedMarks { usual, jit };
/// The functions, outermost first, as programs that draw flame graphs have them: "main;serve;read_[k]".
[[nodiscard]] std::string folded_text(const Stack& stack, FoldedMarks marks = FoldedMarks::usual);
/// Replaces the separator of frames, which other texts can have, too.
[[nodiscard]] std::string folded_word(std::string text);

}  // namespace usdt::exports
