// SPDX-License-Identifier: BSD-2-Clause
// One plan being made. Where programs go is in planner.cpp, what they read there in planner_templates.cpp. Private to
// plan/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash_index.hpp"
#include "plan/arg_template.hpp"
#include "plan/captures.hpp"
#include "plan/placement.hpp"
#include "plan/spec_table.hpp"
#include "plan/values.hpp"
#include "usdt/decode.hpp"
#include "usdt/plan.hpp"

namespace usdt::plan {

/// Different arguments that a plan describes: so many, and one for each 32 bytes of its files. An honest note takes
/// more for each; in a hostile one two bytes of text say an argument, which takes some 200 bytes of memory.
constexpr std::size_t kFreeArguments = 3 << 15;
constexpr std::size_t kFileBytesPerArgument = 32;

/// Goes through the files of a selection, and puts their sites into a plan.
class Planner {
 public:
  Planner(const KernelFacts& kernel, const PlanOptions& options, bool several_files)
      : kernel_(kernel),
        options_(options),
        several_files_(several_files),
        values_(options.where.get(), options.table.get(), options.rows.get()) {
    plan_.scope = options.scope;
  }

  /// Makes room for so many sites in all, each unlike the others. Room that is not needed is never touched.
  void reserve(std::size_t sites) {
    plan_.probes.reserve(sites);
    plan_.sites.reserve(sites);
    plan_.args.reserve(sites);
    templates_.reserve(sites);
    specs_.reserve(sites);
  }

  void add(const ProbeFile& file);
  Result<void> add(const KernelSelection& selection);
  /// Checks that values wanted beside the arguments are somewhere. Errors: invalid_argument.
  [[nodiscard]] Result<void> check() const { return values_.check(); }
  [[nodiscard]] AttachPlan take() && {
    plan_.specs = std::move(specs_).take();
    std::move(values_).take(plan_);
    return std::move(plan_);
  }

 private:
  /// The file being planned, and what was found out about its names and texts.
  struct Current {
    Index<PlannedFile> file;
    const ElfFile& elf;
    ArgDecoder decoder;
    HashIndex probes = {};  ///< by provider and name
    KnownTemplates templates = {};
    std::map<std::pair<Moment, ReturnBy>, Index<AttachGroup>> groups = {};
    std::map<std::tuple<const FunctionSignature*, Moment, const TextOptions*, const ValueOptions*>, std::uint32_t>
        function_templates = {};
    /// The texts with lengths of sites, by their description and argument text.
    std::map<std::pair<const SiteDescription*, std::string_view>, std::vector<TextAndLength>> lengths = {};
  };
  /// Describes a place where a program will run, of whatever kind it is.
  struct Spot {
    PointName name;
    VirtAddr address;  ///< as linked, corrected: what addresses relative to it count from
    Placement placement;
    Moment moment = Moment::entry;
    ReturnBy returns = ReturnBy::probe;
    const std::vector<FileOffset>* rets = nullptr;  ///< null: none
    bool at_entry = false;                          ///< FilePlace::at_entry
  };

  [[nodiscard]] std::string too_many_arguments() const;
  void add_sites(const ProbeFile& file, Current& current);
  void add_functions(const ProbeFile& file, Current& current);
  void add_function(const FunctionPoint& point, Current& current);
  Index<PlannedProbe> probe_of(const PointName& name, std::optional<Moment> function, Current& current);
  Index<AttachGroup> group_of(Moment moment, ReturnBy returns, Current& current);
  /// Holds what is wanted as text at a site, what is known of such texts, and what is wanted beside the arguments.
  struct Texts {
    const TextOptions* wanted;
    std::span<const TextAndLength> known;
    const ValueOptions* values;
    const SiteDescription* description = nullptr;
    [[nodiscard]] TemplateKey key(std::string_view text) const {
      return {wanted, values, known.data(), description, text};
    }
  };
  [[nodiscard]] PointName name_of(const Site& site, const Current& current) const;
  [[nodiscard]] PointName name_of(const FunctionPoint& point, const Current& current) const;
  [[nodiscard]] Texts texts_of(const Site& site, Current& current) const;
  const ArgTemplate& template_of(const Site& site, Current& current);
  const ArgTemplate& template_of(const FunctionPoint& point, Current& current);
  std::uint32_t make_template(std::string_view text, const Texts& texts, Current& current);
  std::uint32_t encode_template(Index<std::vector<Arg>> args, ValueAdder::Filter filter, const Texts& texts,
                                Moment moment, Machine machine);
  Index<EncodedSpec> spec_of(const ArgTemplate& args, const Spot& spot, std::uint64_t user_cookie, Machine machine);
  void add_site(const Spot& spot, const ArgTemplate& args, Index<PlannedProbe> probe, Current& current);

  const KernelFacts& kernel_;
  const PlanOptions& options_;
  bool several_files_;
  AttachPlan plan_;
  SpecTable specs_;
  ValueAdder values_;
  std::vector<ArgTemplate> templates_;
  std::size_t decoded_ = 0;  ///< arguments of all templates
  std::size_t most_arguments_ = kFreeArguments;
  std::unordered_map<MachineText, std::uint32_t, KeyHash> shared_templates_;  ///< of texts whose file does not matter
};

}  // namespace usdt::plan
