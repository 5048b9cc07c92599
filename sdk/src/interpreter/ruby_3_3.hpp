// SPDX-License-Identifier: BSD-2-Clause
// Where Ruby 3.3 keeps things, on 64-bit machines.
// Made by offsetof() in a program that includes vm_core.h, method.h, iseq.h and symbol.h of 3.3.8, with the
// configuration of Debian's ruby3.3-dev 3.3.8-2.2, x86-64. Marked ones are of symbol.c and vm_exec.c of 3.3.8. Checked
// by tests/live/stack/ruby_stack_test.py.
#pragma once

#include "interpreter/ruby.hpp"

namespace usdt::interpreter {

inline constexpr RubyLayout kRuby33{
    .version = 0x0303,
    .walk =
        {
            .check_at = 0,
            .check = 0,
            .interpreters = 0,
            .holder = 0,
            .runtime = USDT_RUNTIME_RUBY,
            .version = 0x0303,
            .interpreter_next = 0,
            .interpreter_threads = 0,
            .thread_next = 0,
            .thread_id = 16,  // rb_native_thread.thread_id
            .walk = USDT_WALK_STACK,
            .thread_leads = 0,
            .activation_frame = 0,
            .activation_previous = 0,
            .frame_code = 16,  // rb_control_frame_t.iseq
            .frame_previous = 0,
            .frame_instruction = 0,  // rb_control_frame_t.pc
            .frame_owner = 0,
            .frame_entry = 16,    // the lowest byte of ep[VM_ENV_DATA_INDEX_FLAGS]
            .entry_mask = 0x20,   // VM_FRAME_FLAG_FINISH
            .entry_value = 0x20,  //
            .code_tag = 0,
            .code =
                {
                    .at = 8,  // from rb_iseq_constant_body.iseq_encoded to location.first_lineno
                    .bytes = 88,
                    .mask = 0x7fd,   // all but param.flags, some of which are set later
                    .name_word = 9,  // rb_iseq_constant_body.location.label: (80 - 8) / 8
                    .name_at = 16,   // RString.len, and a short text itself, or where a longer one is
                    .name_bytes = 8 * USDT_NAME_WORDS,
                },
            .stacked =
                {
                    .variable = {},
                    .variable_words = 3,      // libruby-3.3.so does not export ruby_current_ec: PT_TLS has 24 bytes
                    .context_stack = 0,       // rb_execution_context_t.vm_stack
                    .context_size = 8,        // rb_execution_context_t.vm_stack_size
                    .context_frame = 16,      // rb_execution_context_t.cfp
                    .context_thread = 48,     // rb_execution_context_t.thread_ptr
                    .thread_context = 48,     // rb_thread_t.ec
                    .thread_native = 40,      // rb_thread_t.nt
                    .frame_size = 56,         // sizeof(rb_control_frame_t)
                    .frame_environment = 32,  // rb_control_frame_t.ep; in it at -2 the method, at 0 the flags
                    .object_code = 16,        // rb_iseq_t.body
                    .method =
                        {
                            .at = 8,         // rb_callable_method_entry_t.defined_class to owner,
                            .bytes = 32,     // which are the rest of it
                            .mask = 0xf,     // all of them
                            .name_word = 1,  // rb_callable_method_entry_t.def: (16 - 8) / 8
                            .name_at = 32,   // rb_method_definition_t.original_id
                            .name_bytes = 8,
                        },
                },
        },
    .loop_frame = 15,         // vm_exec.c: DECL_SC_REG(rb_control_frame_t *, cfp, "15"), r15
    .loop_instruction = 14,   // vm_exec.c: DECL_SC_REG(const VALUE *, pc, "14"), r14
    .code_count = 4,          // rb_iseq_constant_body.iseq_size
    .code_instructions = 8,   // rb_iseq_constant_body.iseq_encoded
    .code_file = 64,          // rb_iseq_constant_body.location.pathobj
    .code_name = 80,          // rb_iseq_constant_body.location.label
    .code_lines = 112,        // rb_iseq_constant_body.insns_info.body
    .code_line_count = 128,   // rb_iseq_constant_body.insns_info.size
    .code_ranks = 136,        // rb_iseq_constant_body.insns_info.succ_index_table
    .line_size = 12,          // sizeof(struct iseq_insn_info_entry), which begins with line_no
    .method_definition = 16,  // rb_callable_method_entry_t.def
    .definition_name = 32,    // rb_method_definition_t.original_id
    .method_type = 6,         // imemo_ment
    .text_length = 16,        // RString.len
    .text_data = 24,          // RString.as.heap.ptr
    .text_within = 24,        // RString.as.embed
    .text_shift = 0,
    .text_bits = 0,
    .list_length = 16,     // RArray.as.heap.len
    .list_data = 32,       // RArray.as.heap.ptr
    .list_within = 16,     // RArray.as.ary
    .list_shift = 15,      // RARRAY_EMBED_LEN_SHIFT
    .list_bits = 0x7f,     // RARRAY_EMBED_LEN_MASK >> RARRAY_EMBED_LEN_SHIFT
    .names_last = 0,       // rb_symbols_t.last_id (symbol.h)
    .names_list = 16,      // rb_symbols_t.ids (symbol.h)
    .names_unit = 512,     // ID_ENTRY_UNIT (symbol.c)
    .name_size = 2,        // ID_ENTRY_SIZE (symbol.c)
    .last_operator = 169,  // tLAST_OP_ID (id.h)
    .name_shift = 4,       // RUBY_ID_SCOPE_SHIFT
};

}  // namespace usdt::interpreter
