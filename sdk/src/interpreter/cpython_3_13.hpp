// SPDX-License-Identifier: BSD-2-Clause
// Where CPython 3.13 says itself where it keeps things: the words of _Py_DebugOffsets, with which _PyRuntime begins.
// Made of Include/internal/pycore_runtime.h of CPython 3.13.0, and checked with the table in that program.
#pragma once

#include "interpreter/cpython.hpp"

namespace usdt::interpreter {

inline constexpr CPythonTable kCPython313{
    .version = 0x030d,
    .words = 73,
    .free_threaded = 2,
    .interpreters = 5,          // runtime_state.interpreters_head
    .interpreter_next = 8,      // interpreter_state.next
    .interpreter_threads = 9,   // interpreter_state.threads_head
    .thread_next = 21,          // thread_state.next
    .thread_interpreter = 22,   // thread_state.interp
    .thread_frame = 23,         // thread_state.current_frame
    .thread_id = 24,            // thread_state.thread_id
    .frame_previous = 29,       // interpreter_frame.previous
    .frame_code = 30,           // interpreter_frame.executable
    .frame_instruction = 31,    // interpreter_frame.instr_ptr
    .frame_owner = 33,          // interpreter_frame.owner
    .code_file = 35,            // code_object.filename
    .code_name = 36,            // code_object.name
    .code_qualified_name = 37,  // code_object.qualname
    .code_lines = 38,           // code_object.linetable
    .code_first_line = 39,      // code_object.firstlineno
    .code_start = 43,           // code_object.co_code_adaptive
    .object_type = 45,          // pyobject.ob_type
    .bytes_size = 65,           // bytes_object.ob_size
    .bytes_data = 66,           // bytes_object.ob_sval
    .text_state = 68,           // unicode_object.state
    .text_length = 69,          // unicode_object.length
    .text_size = 70,            // unicode_object.asciiobject_size
    // What the table does not have:
    .entry_owner = 3,  // FRAME_OWNED_BY_CSTACK
    .code_tag = 0,     // pointers are plain
    .text_kind = 2,    // the bit of PyASCIIObject.state at which `kind` begins
    .name_hash = 24,   // PyASCIIObject.hash
};

}  // namespace usdt::interpreter
