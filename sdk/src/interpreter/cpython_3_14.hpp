// SPDX-License-Identifier: BSD-2-Clause
// Where CPython 3.14 says itself where it keeps things: the words of _Py_DebugOffsets, with which _PyRuntime begins.
// Made of the table in section .PyRuntime of Debian's CPython 3.14.10, x86-64, whose values are those of its
// structures.
#pragma once

#include "interpreter/cpython.hpp"

namespace usdt::interpreter {

inline constexpr CPythonTable kCPython314{
    .version = 0x030e,
    .words = 95,
    .free_threaded = 2,
    .interpreters = 5,          // runtime_state.interpreters_head
    .interpreter_next = 8,      // interpreter_state.next
    .interpreter_threads = 9,   // interpreter_state.threads_head
    .thread_next = 24,          // thread_state.next
    .thread_interpreter = 25,   // thread_state.interp
    .thread_frame = 26,         // thread_state.current_frame
    .thread_id = 27,            // thread_state.thread_id
    .frame_previous = 32,       // interpreter_frame.previous
    .frame_code = 33,           // interpreter_frame.executable
    .frame_instruction = 34,    // interpreter_frame.instr_ptr
    .frame_owner = 36,          // interpreter_frame.owner
    .code_file = 40,            // code_object.filename
    .code_name = 41,            // code_object.name
    .code_qualified_name = 42,  // code_object.qualname
    .code_lines = 43,           // code_object.linetable
    .code_first_line = 44,      // code_object.firstlineno
    .code_start = 48,           // code_object.co_code_adaptive
    .object_type = 51,          // pyobject.ob_type
    .bytes_size = 75,           // bytes_object.ob_size
    .bytes_data = 76,           // bytes_object.ob_sval
    .text_state = 78,           // unicode_object.state
    .text_length = 79,          // unicode_object.length
    .text_size = 80,            // unicode_object.asciiobject_size
    // What the table does not have:
    .entry_owner = 3,  // FRAME_OWNED_BY_INTERPRETER
    .code_tag = 3,     // Py_TAG_BITS of _PyStackRef
    .text_kind = 2,    // the bit of PyASCIIObject.state at which `kind` begins
    .name_hash = 24,   // PyASCIIObject.hash
};

}  // namespace usdt::interpreter
