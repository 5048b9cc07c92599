// SPDX-License-Identifier: BSD-2-Clause
#include <cerrno>
#include <utility>

#include "handles.hpp"

namespace usdtc {
namespace {

/// The error that the caller gets where there is no memory for more; nobody frees it.
usdtc_error& no_memory() noexcept {
  static usdtc_error error{USDTC_ERROR_NO_MEMORY, {usdt::ErrorKind::limit, "no memory", ENOMEM}};
  return error;
}
[[maybe_unused]] const usdtc_error& made_early = no_memory();

struct Kind {
  usdt::ErrorKind kind;
  std::uint32_t number;
};
constexpr Kind kKinds[] = {{usdt::ErrorKind::invalid_argument, USDTC_ERROR_INVALID_ARGUMENT},
                           {usdt::ErrorKind::syntax, USDTC_ERROR_SYNTAX},
                           {usdt::ErrorKind::not_found, USDTC_ERROR_NOT_FOUND},
                           {usdt::ErrorKind::no_permission, USDTC_ERROR_NO_PERMISSION},
                           {usdt::ErrorKind::not_supported, USDTC_ERROR_NOT_SUPPORTED},
                           {usdt::ErrorKind::malformed, USDTC_ERROR_MALFORMED},
                           {usdt::ErrorKind::changed, USDTC_ERROR_CHANGED},
                           {usdt::ErrorKind::limit, USDTC_ERROR_LIMIT},
                           {usdt::ErrorKind::io, USDTC_ERROR_IO},
                           {usdt::ErrorKind::type_mismatch, USDTC_ERROR_TYPE_MISMATCH},
                           {usdt::ErrorKind::stopped, USDTC_ERROR_STOPPED},
                           {usdt::ErrorKind::verifier, USDTC_ERROR_VERIFIER}};

/// The errno of each enum usdtc_error_kind.
constexpr int kErrno[] = {0,     EINVAL, EINVAL,     ENOENT,    EPERM,   EOPNOTSUPP, EBADMSG,        ESTALE,
                          E2BIG, EIO,    EPROTOTYPE, ECANCELED, ENOEXEC, ENOMEM,     ENOTRECOVERABLE};

}  // namespace

int report(std::uint32_t kind, usdt::Error&& why, usdtc_error** error) noexcept {
  if (!error) return -kErrno[kind];
  auto* made = new (std::nothrow) usdtc_error;
  if (!made) return report_no_memory(error);
  made->kind = kind;
  made->error = std::move(why);
  *error = made;
  return -kErrno[kind];
}

int report(usdt::Error&& why, usdtc_error** error) noexcept {
  std::uint32_t number = USDTC_ERROR_INTERNAL;
  for (const Kind& each : kKinds)
    if (each.kind == why.kind) number = each.number;
  return report(number, std::move(why), error);
}

int report_no_memory(usdtc_error** error) noexcept {
  if (error) *error = &no_memory();
  return -ENOMEM;
}

usdt::Result<std::vector<std::string>> read_texts(const char* const* texts, std::size_t count, std::string_view what) {
  if (count > 0 && !texts) return invalid(fmt::format("{} is NULL, and should have {}", what, count));
  std::vector<std::string> out;
  for (std::size_t i = 0; i < count; ++i) {
    if (!texts[i]) return invalid(fmt::format("{}[{}] is NULL", what, i));
    out.emplace_back(texts[i]);
  }
  return out;
}

usdt::Result<std::vector<pid_t>> read_pids(const std::int32_t* pids, std::size_t count, std::string_view what) {
  if (count > 0 && !pids) return invalid(fmt::format("{} is NULL, and should have {}", what, count));
  return std::vector<pid_t>(pids, pids + count);
}

}  // namespace usdtc

extern "C" {

const char* usdtc_version(void) { return USDTC_VERSION; }

uint32_t usdtc_error_kind(const usdtc_error* error) { return error ? error->kind : 0; }
const char* usdtc_error_message(const usdtc_error* error) { return error ? error->error.message.c_str() : ""; }
int usdtc_error_os_error(const usdtc_error* error) { return error ? error->error.os_error : 0; }
int64_t usdtc_error_column(const usdtc_error* error) {
  return error && error->error.column ? int64_t{*error->error.column} : -1;
}
const char* usdtc_error_log(const usdtc_error* error) { return error ? error->error.log.c_str() : ""; }
void usdtc_error_free(usdtc_error* error) {
  if (error != &usdtc::no_memory()) delete error;
}

usdtc_stop* usdtc_stop_new(void) {
  try {
    return new usdtc_stop;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void usdtc_stop_request(usdtc_stop* stop) {
  if (stop) stop->source.request_stop();
}
void usdtc_stop_free(usdtc_stop* stop) { delete stop; }

int usdtc_check_privilege(usdtc_error** error) {
  return usdtc::guarded(error, [] { return usdt::check_privilege(); });
}
}
