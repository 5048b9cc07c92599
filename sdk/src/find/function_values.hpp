// SPDX-License-Identifier: BSD-2-Clause
// Finds out what is known of the values of a file's functions. Private to find/.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "dwarf/debug_info.hpp"
#include "dwarf/function_info.hpp"
#include "elf/function_pieces.hpp"
#include "find/file_code.hpp"
#include "find/joined_types.hpp"
#include "locate/signature.hpp"
#include "usdt/probe_file.hpp"
#include "usdt/stop.hpp"
#include "usdt/type.hpp"

namespace usdt::find {

using SharedSignature = std::shared_ptr<const FunctionSignature>;

/// The debug information of a file, and the values that it tells of.
struct FileDebug {
  dwarf::DebugInfo info;
  locate::Signatures signatures;
};

/// A function, as debug information describes it.
struct KnownFunction {
  SharedSignature signature;
  dwarf::SourceLine declared;
  std::vector<elf::CodePart> elsewhere;  ///< its code that does not follow its entry
  bool go = false;  ///< a function of a Go program is taken for Go's, unless it is known to be another language's
};

/// Makes signatures of debug information, of what is said by hand, and of calling conventions.
class FunctionValues {
 public:
  /// All of them outlive this. `debug`: may be nothing yet. `file`: has `refused` set where debug information was not
  /// read, which differs from there being none.
  FunctionValues(const FileCode& code, const std::optional<FileDebug>& debug, const FilesBeside& beside,
                 const StopToken& stop, ProbeFile& file)
      : code_(code), debug_(debug), beside_(beside), stop_(stop), file_(file) {}

  /// There is debug information.
  [[nodiscard]] SharedSignature of(const dwarf::FunctionInfo& info, const dwarf::Instance& instance);
  /// The variables at a line of the function; nothing: they are not known. There is debug information.
  [[nodiscard]] SharedSignature at_line(const dwarf::FunctionInfo& info, const dwarf::Instance& instance,
                                        std::uint32_t line);
  [[nodiscard]] SharedSignature typed_by_hand(std::vector<Type> types) const;
  [[nodiscard]] const SharedSignature& untyped();
  /// Behind the first instructions, registers and stack are no longer as the caller left them. Go has a calling
  /// convention of its own.
  [[nodiscard]] const SharedSignature& nothing();

  void note_refusal(const Error& error);

 private:
  [[nodiscard]] SharedSignature shared(locate::Signature&& found);
  [[nodiscard]] const std::shared_ptr<const TypeGraph>& types();

  const FileCode& code_;
  const std::optional<FileDebug>& debug_;
  const FilesBeside& beside_;
  const StopToken& stop_;
  ProbeFile& file_;
  std::shared_ptr<const TypeGraph> types_;
  SharedSignature untyped_;
  SharedSignature nothing_;
};

}  // namespace usdt::find
