// SPDX-License-Identifier: BSD-2-Clause
// Where CPython 3.12 keeps things, on 64-bit machines.
// Made by offsetof() in a program that includes Include/internal of CPython 3.12.1 (pycore_runtime.h, pycore_interp.h,
// pycore_frame.h, Py_BUILD_CORE), x86-64.
#pragma once

#include "interpreter/cpython.hpp"

namespace usdt::interpreter {

inline constexpr CPythonLayout kCPython312{
    .version = 0x030c,
    .interpreters = 40,  // _PyRuntimeState.interpreters.head
    .holder = 0,         // each interpreter has a lock of its own
    .walk =
        {
            .check_at = 0,
            .check = 0,
            .interpreters = 0,
            .holder = 0,
            .runtime = USDT_RUNTIME_CPYTHON,
            .version = 0x030c,
            .interpreter_next = 0,      // PyInterpreterState.next
            .interpreter_threads = 72,  // PyInterpreterState.threads.head
            .thread_next = 8,           // PyThreadState.next
            .thread_id = 136,           // PyThreadState.thread_id
            .walk = USDT_WALK_FROM_ACTIVATION | USDT_WALK_MARKS,
            .thread_leads = 56,        // PyThreadState.cframe
            .activation_frame = 0,     // _PyCFrame.current_frame
            .activation_previous = 0,  // not followed
            .frame_code = 0,           // _PyInterpreterFrame.f_code
            .frame_previous = 8,       // _PyInterpreterFrame.previous
            .frame_instruction = 56,   // _PyInterpreterFrame.prev_instr
            .frame_owner = 70,         // _PyInterpreterFrame.owner
            .frame_entry = 70,         // the same: FRAME_OWNED_BY_CSTACK
            .entry_mask = 0xff,
            .entry_value = 3,
            .code_tag = 0,
            .code =
                {
                    .at = 56,  // behind PyCodeObject.co_argcount, up to co_linetable
                    .bytes = 88,
                    .mask = 0x7ff,   // all of them
                    .name_word = 8,  // PyCodeObject.co_name: (120 - 56) / 8
                    .name_at = 24,   // PyASCIIObject.hash
                    .name_bytes = 8,
                },
            .stacked = {},
        },
    .thread_interpreter = 16,  // PyThreadState.interp
    .object_type = 8,          // PyObject.ob_type
    .code_first_line = 68,     // PyCodeObject.co_firstlineno
    .code_file = 112,          // PyCodeObject.co_filename
    .code_name = 128,          // PyCodeObject.co_qualname
    .code_lines = 136,         // PyCodeObject.co_linetable
    .code_begins = 176,        // PyCodeObject._co_firsttraceable
    .code_start = 192,         // PyCodeObject.co_code_adaptive
    .text_length = 16,         // PyASCIIObject.length
    .text_state = 32,          // PyASCIIObject.state
    .text_kind = 2,            // PyASCIIObject.state.kind
    .text_ascii = 40,          // sizeof(PyASCIIObject)
    .text_other = 56,          // sizeof(PyCompactUnicodeObject)
    .bytes_size = 16,          // PyVarObject.ob_size
    .bytes_data = 32,          // PyBytesObject.ob_sval
};

}  // namespace usdt::interpreter
