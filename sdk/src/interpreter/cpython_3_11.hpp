// SPDX-License-Identifier: BSD-2-Clause
// Where CPython 3.11 keeps things, on 64-bit machines.
// Made by offsetof() in a program that includes Include/internal of CPython 3.11.2 (pycore_runtime.h, pycore_interp.h,
// pycore_frame.h, Py_BUILD_CORE), x86-64. Checked by tests/live/stack/python_stack_test.py against tracebacks
// of 3.11.2.
#pragma once

#include "interpreter/cpython.hpp"

namespace usdt::interpreter {

inline constexpr CPythonLayout kCPython311{
    .version = 0x030b,
    .interpreters = 40,  // _PyRuntimeState.interpreters.head
    .holder = 576,       // _PyRuntimeState.gilstate.tstate_current
    .walk =
        {
            .check_at = 0,
            .check = 0,
            .interpreters = 0,
            .holder = 0,
            .runtime = USDT_RUNTIME_CPYTHON,
            .version = 0x030b,
            .interpreter_next = 0,      // PyInterpreterState.next
            .interpreter_threads = 16,  // PyInterpreterState.threads.head
            .thread_next = 8,           // PyThreadState.next
            .thread_id = 152,           // PyThreadState.thread_id
            .walk = USDT_WALK_FROM_ACTIVATION | USDT_WALK_ACTIVATIONS,
            .thread_leads = 56,         // PyThreadState.cframe
            .activation_frame = 8,      // _PyCFrame.current_frame
            .activation_previous = 16,  // _PyCFrame.previous
            .frame_code = 32,           // _PyInterpreterFrame.f_code
            .frame_previous = 48,       // _PyInterpreterFrame.previous
            .frame_instruction = 56,    // _PyInterpreterFrame.prev_instr
            .frame_owner = 69,          // _PyInterpreterFrame.owner
            .frame_entry = 68,          // _PyInterpreterFrame.is_entry
            .entry_mask = 0xff,
            .entry_value = 1,
            .code_tag = 0,
            .code =
                {
                    .at = 56,  // PyCodeObject.co_argcount to co_linetable
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
    .code_first_line = 72,     // PyCodeObject.co_firstlineno
    .code_file = 112,          // PyCodeObject.co_filename
    .code_name = 128,          // PyCodeObject.co_qualname
    .code_lines = 136,         // PyCodeObject.co_linetable
    .code_begins = 168,        // PyCodeObject._co_firsttraceable
    .code_start = 184,         // PyCodeObject.co_code_adaptive
    .text_length = 16,         // PyASCIIObject.length
    .text_state = 32,          // PyASCIIObject.state
    .text_kind = 2,            // PyASCIIObject.state.kind
    .text_ascii = 48,          // sizeof(PyASCIIObject)
    .text_other = 72,          // sizeof(PyCompactUnicodeObject)
    .bytes_size = 16,          // PyVarObject.ob_size
    .bytes_data = 32,          // PyBytesObject.ob_sval
};

}  // namespace usdt::interpreter
