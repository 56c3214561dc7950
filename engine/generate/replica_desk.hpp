// Where requests wait between whoever receives them and the replicas that serve them, and who goes where: the
// simulator's router, roles and their rule (core/router.hpp, core/replica_roles.hpp), in real time.
//
// All replicas and the front share one desk; every call takes its lock, and nothing long is done under it.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/disaggregation.hpp"
#include "core/replica_roles.hpp"
#include "core/router.hpp"
#include "engine/generate/wall_clock.hpp"

namespace dculab::engine {

// How replicas of this machine share the work; in the words of deployments.
struct ReplicaChoices {
  int data_parallel_size = 1;
  Routing routing = Routing::round_robin;
  int prefill_replicas = 0, decode_replicas = 0;  // both or none, in the place of data_parallel_size
  std::optional<RoleSwitching> role_switching{};  // between them

  [[nodiscard]] bool is_disaggregated() const { return prefill_replicas > 0; }
  [[nodiscard]] int replicas() const {
    return is_disaggregated() ? prefill_replicas + decode_replicas : data_parallel_size;
  }
};

// Everything that keeps replicas of this engine from sharing the work like that; empty when nothing does.
[[nodiscard]] std::vector<std::string> problems(const ReplicaChoices& choices, const EngineOptions& options);

class ReplicaDesk {
 public:
  using OnFinished = std::function<void(const Sequence&)>;

  // `num_blocks` of each replica. `on_finished` is called under the lock, with sequences as if one server had served
  // them. All must outlive the desk.
  ReplicaDesk(const ReplicaChoices& choices, const EngineOptions& options, int num_blocks, const WallClock& clock,
              OnFinished on_finished);

  // The front: a request has arrived; no other will come; something failed, which ends all waits.
  void submit(Request request);
  void close();
  void abandon();

  // A replica: what it has been sent since it last asked. Where it is idle it waits for something; nothing when all is
  // done.
  [[nodiscard]] std::optional<std::vector<Request>> take(int replica, bool is_idle);

  // A step of the replica has generated `tokens` tokens.
  void count_tokens(int replica, std::int64_t tokens);

  // Of a prompt that is computed: whether another replica may decode it.
  [[nodiscard]] bool is_handed_over(SequenceId id) const;

  // A sequence has ended at the replica. `kv` is what a prompt that is handed over takes along.
  void finish(int replica, const Sequence& sequence, std::shared_ptr<const std::vector<std::byte>> kv);

  struct Counts {
    ReplicaRole role = ReplicaRole::both;
    int role_switches = 0;
    std::int64_t requests = 0;  // that ended there
    std::int64_t handed_over = 0;
    std::int64_t handed_over_bytes = 0;
  };
  // When all is done.
  [[nodiscard]] const Counts& counts(int replica) const { return replicas_[static_cast<std::size_t>(replica)].counts; }

 private:
  struct Replica {
    Counts counts;
    RoleWork work;
    ReplicaLoad load;
    std::vector<Request> inbox;
  };

  void send(Router& router, ReplicaRole role, Request request);
  void switch_roles();
  [[nodiscard]] bool takes(const Replica& replica, ReplicaRole role) const {
    return replica.counts.role == ReplicaRole::both || replica.counts.role == role;
  }

  const EngineOptions& options_;
  const int num_blocks_;
  const WallClock& clock_;
  const OnFinished on_finished_;
  const bool is_disaggregated_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Replica> replicas_;
  Router arrivals_, transfers_;
  std::optional<RoleController> roles_;
  std::unordered_map<SequenceId, Prefilled> prefilled_;
  std::int64_t unfinished_ = 0;  // requests
  bool is_closed_ = false, is_abandoned_ = false;
};

}  // namespace dculab::engine
