// SPDX-License-Identifier: BSD-2-Clause
// Where PHP 8.2 without thread safety keeps things, on 64-bit machines.
// Made by offsetof() in a program that includes the headers of Debian's php8.2-dev 8.2.36 (zend_compile.h,
// zend_globals.h, zend_string.h), x86-64. Checked by tests/live/stack/php_stack_test.py.
#pragma once

#include "interpreter/php.hpp"

namespace usdt::interpreter {

inline constexpr PhpLayout kPhp82{
    .version = 0x0802,
    .innermost = 488,  // zend_executor_globals.current_execute_data
    .walk =
        {
            .check_at = 0,
            .check = 0,
            .interpreters = 0,
            .holder = 0,
            .runtime = USDT_RUNTIME_PHP,
            .version = 0x0802,
            .interpreter_next = 0,
            .interpreter_threads = 0,
            .thread_next = 0,
            .thread_id = 0,
            .walk = USDT_WALK_ONE_THREAD,
            .thread_leads = 0,
            .activation_frame = 0,
            .activation_previous = 0,
            .frame_code = 24,        // zend_execute_data.func
            .frame_previous = 48,    // zend_execute_data.prev_execute_data
            .frame_instruction = 0,  // zend_execute_data.opline
            .frame_owner = 40,       // no owner: any byte
            .frame_entry = 42,       // zend_execute_data.This.u1.type_info, its third byte
            .entry_mask = 2,         // ZEND_CALL_TOP >> 16
            .entry_value = 2,
            .code_tag = 0,
            .code =
                {
                    .at = 8,  // from zend_op_array.function_name on
                    .bytes = 88,
                    .mask = 0x041b,  // function_name, scope, num_args, arg_info, opcodes
                    .name_word = 0,  // zend_op_array.function_name
                    .name_at = 8,    // zend_string.h
                    .name_bytes = 8,
                },
            .stacked = {},
        },
    .function_type = 0,           // zend_op_array.type
    .function_name = 8,           // zend_op_array.function_name
    .function_class = 16,         // zend_op_array.scope
    .function_count = 80,         // zend_op_array.last
    .function_instructions = 88,  // zend_op_array.opcodes
    .function_file = 152,         // zend_op_array.filename
    .class_name = 8,              // zend_class_entry.name
    .text_length = 16,            // zend_string.len
    .text_data = 24,              // zend_string.val
    .instruction_size = 32,       // sizeof(zend_op)
    .instruction_line = 24,       // zend_op.lineno
};

}  // namespace usdt::interpreter
