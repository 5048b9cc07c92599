// SPDX-License-Identifier: BSD-2-Clause
// The programs that are loaded for a client, and what is attached of them. Private to serve/.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/messages.hpp"
#include "serve/allowed_files.hpp"
#include "sys/unique_fd.hpp"
#include "usdt/bpf_object.hpp"
#include "usdt/broker_service.hpp"

namespace usdt::serve {

/// What goes back to a client: an answer, and the descriptors that belong to it. They are the client's alone from then
/// on.
template <class Answer>
struct Granted {
  Answer answer;
  std::vector<int> lent = {};             ///< the object's
  std::vector<sys::UniqueFd> given = {};  ///< closed here, once they are sent
};

class Objects {
 public:
  Objects(const BrokerClient& client, const BrokerServiceOptions& options) : client_(client), options_(options) {}

  /// Loads the stock programs for a plan, whose files come along. Errors: those of check_file(), check_places() and
  /// make_constants(); limit; those of BpfObject::load().
  [[nodiscard]] Result<Granted<broker::LoadReply>> load(broker::LoadRequest request, std::vector<sys::UniqueFd> files);
  /// Attaches one planned link to one process. Errors: those of AllowedProcess::check(); limit; what the kernel says.
  [[nodiscard]] Result<Granted<broker::AttachReply>> attach(const broker::AttachRequest& request);
  /// How many hits found no program free, as far as that is known.
  [[nodiscard]] std::optional<std::uint64_t> missed(std::uint32_t object) const;
  void forget(std::uint32_t object) { objects_.erase(object); }

 private:
  struct Object {
    std::shared_ptr<const AttachPlan> plan;
    std::vector<AllowedFile> files;
    std::string program;
    std::optional<LoadedObject> loaded = {};
    std::uint64_t map_bytes = 0;

    /// Errors: those of LoadedObject::program_fd().
    [[nodiscard]] Result<int> program_fd(Index<PlannedProgram> number) const;
  };

  [[nodiscard]] Result<std::vector<AllowedFile>> check_files(const AttachPlan& plan, std::vector<sys::UniqueFd> files);
  [[nodiscard]] Result<BpfObject> open(const broker::LoadRequest& request) const;
  /// Reserves room for the maps of an object. Errors: limit.
  [[nodiscard]] Result<std::uint64_t> take_map_bytes(const BpfObject& object, const broker::LoadRequest& request,
                                                     const AttachPlan& plan) const;
  /// Puts the maps of an earlier object of this connection in the place of its own.
  [[nodiscard]] Result<void> share_maps(BpfObject& object, const broker::LoadRequest& request) const;
  void tell(std::string_view what, const AttachPlan& plan, const std::vector<AllowedFile>& files,
            std::string_view result) const;

  const BrokerClient& client_;
  const BrokerServiceOptions& options_;
  std::map<std::uint32_t, Object> objects_ = {};
  std::uint32_t next_ = 1;
  std::uint64_t links_ = 0;
  std::uint64_t places_ = 0;
};

}  // namespace usdt::serve
