// SPDX-License-Identifier: BSD-2-Clause
// Includes the whole public interface of the library. Its headers, in the order in which data moves:
//
//   where to look       pattern.hpp (provider:name globs), discover.hpp (files of a path, name, process, directory)
//                       select.hpp (from patterns to probes in one step)
//   what is there       elf_file.hpp -> probe.hpp (sites), arg.hpp and decode.hpp (their arguments)
//                       type_graph.hpp (what their types are made of)
//   what to attach      plan.hpp, cost.hpp (what a hit will cost)
//   blind spots         shortened.hpp (values beyond what a program can read), moved_code.hpp (code that left its file)
//   this kernel         features.hpp (what it offers), red_zone.hpp (a self-test), privilege.hpp
//   attaching           tracer.hpp (the stock program: trace_options.hpp, event_ring.hpp, overhead.hpp) or
//                       bpf_object.hpp and link.hpp (your own); broker.hpp (by a service, without privileges)
//   what comes later    follow.hpp
//   values              event.hpp; consumer.hpp for records of your own
//   the slowest         slowest.hpp (of calls and spans)
//   what people ask     question.hpp (a value), question_text.hpp (as text), question_plan.hpp (its plan),
//                       explanation.hpp (its cost)
//   what people read    view.hpp (tables, percentiles), print_list.hpp (values), format_string.hpp (lines)
//   a whole trace       session.hpp (questions answered, live or out of a recording)
//   answers             answers.hpp (who takes them), surroundings.hpp (beside events), account.hpp and counts.hpp (of
//                       all hits)
//   answers as files    sink.hpp (text, JSON, CSV, recordings)
//   for later           recording.hpp (events in files, and back), event_filter.hpp (questions asked of them)
//                       replay.hpp (a question about one), recorded_question.hpp
//   stacks              stack.hpp (frames), symbolizer.hpp (names for them), kernel_symbols.hpp
//   shared with BPF     bpf/spec.h, bpf/event.h; BPF programs include bpf/usdt.bpf.h
//   ending early        stop.hpp
//   everywhere          fwd.hpp, result.hpp, error.hpp, address.hpp, machine.hpp
//
// A whole trace is select(), plan_attach(), Tracer::start() and Tracer::poll(), or trace() in the place of the last
// two. Functions that can fail return Result<T>; the library does not throw, print or exit. Each header tells its
// threads.
#pragma once

#include "usdt/account.hpp"
#include "usdt/address.hpp"
#include "usdt/answers.hpp"
#include "usdt/arg.hpp"
#include "usdt/bits.hpp"
#include "usdt/bpf_object.hpp"
#include "usdt/broker.hpp"
#include "usdt/broker_service.hpp"
#include "usdt/carrier.hpp"
#include "usdt/clock.hpp"
#include "usdt/consumer.hpp"
#include "usdt/cookie.hpp"
#include "usdt/cost.hpp"
#include "usdt/counts.hpp"
#include "usdt/decode.hpp"
#include "usdt/discover.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/error.hpp"
#include "usdt/event.hpp"
#include "usdt/event_filter.hpp"
#include "usdt/event_ring.hpp"
#include "usdt/explanation.hpp"
#include "usdt/expression.hpp"
#include "usdt/expression_type.hpp"
#include "usdt/features.hpp"
#include "usdt/file_change.hpp"
#include "usdt/follow.hpp"
#include "usdt/format_string.hpp"
#include "usdt/fwd.hpp"
#include "usdt/hit_field.hpp"
#include "usdt/int128.hpp"
#include "usdt/kernel.hpp"
#include "usdt/kernel_symbols.hpp"
#include "usdt/link.hpp"
#include "usdt/machine.hpp"
#include "usdt/moved_code.hpp"
#include "usdt/overhead.hpp"
#include "usdt/pattern.hpp"
#include "usdt/plan.hpp"
#include "usdt/print_list.hpp"
#include "usdt/privilege.hpp"
#include "usdt/probe.hpp"
#include "usdt/probe_file.hpp"
#include "usdt/question.hpp"
#include "usdt/question_plan.hpp"
#include "usdt/question_text.hpp"
#include "usdt/recorded_question.hpp"
#include "usdt/recording.hpp"
#include "usdt/red_zone.hpp"
#include "usdt/replay.hpp"
#include "usdt/result.hpp"
#include "usdt/select.hpp"
#include "usdt/session.hpp"
#include "usdt/shortened.hpp"
#include "usdt/signature.hpp"
#include "usdt/sink.hpp"
#include "usdt/site_variables.hpp"
#include "usdt/slowest.hpp"
#include "usdt/stack.hpp"
#include "usdt/stop.hpp"
#include "usdt/surroundings.hpp"
#include "usdt/symbolizer.hpp"
#include "usdt/table.hpp"
#include "usdt/trace_options.hpp"
#include "usdt/tracer.hpp"
#include "usdt/type_graph.hpp"
#include "usdt/utf8.hpp"
#include "usdt/value_path.hpp"
#include "usdt/view.hpp"
