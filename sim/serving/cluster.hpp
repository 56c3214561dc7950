// The replicas of a deployment in one virtual time. The engine whose clock is earliest steps next; a request is routed
// when its time comes before all of theirs, so a router sees every replica as it is at that time.
//
// A server reads one request after the other, before any engine has it (Stack::reading_time).
//
// Where devices share experts, a replica has several groups of devices with sequences of their own (ReplicaDevices::
// ranks). They step together and are served alike, so a sample of them stands for all: of every `one_in` groups one is
// simulated, and of every `one_in` requests one is served. `one_in` is what divides the groups of both pools.
//
// With a shared KV store, a request reads the K and V of its first tokens before its engine has it, after what its
// group read before.
//
// Disaggregated, a request's prompt is computed, and its first token sampled, at a prefill replica, whose blocks are
// free again from then on (the KV cache waits outside of them). It leaves when what this replica sent before has
// left, and is routed to a decode replica when it has arrived. With role switching, replicas change from one pool to
// the other by the rule of core/replica_roles.hpp.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/disaggregation.hpp"
#include "core/replica_roles.hpp"
#include "core/workload.hpp"
#include "sim/serving/virtual_engine.hpp"

namespace dculab::sim {

struct ClusterCallbacks {
  std::function<void(const Sequence&)> on_finished{};  // as if one server had served it
  std::function<void(const ServedStep&, int engine)> on_step{};
};

struct Replica {
  ReplicaRole role = ReplicaRole::both;
  std::deque<StageTimes> stages{};  // one for all engines of a pipeline; of groups with sequences of their own, each
  std::deque<VirtualEngine> engines{};  // one for each stage, or for each such group that is simulated
  std::vector<Seconds> link_free{};     // of such groups, or one: of a prefill replica towards decode replicas,
  std::vector<Seconds> store_free{};    // and from the KV store
  std::int64_t finished = 0;            // requests
  int role_switches = 0;
  RoleWork work{};  // disaggregated
};

// Groups with sequences of their own of which one is simulated, see above.
[[nodiscard]] int one_in(const Deployment& deployment);

class Cluster {
 public:
  // `parts` must outlive the cluster; problems() of its members are empty.
  Cluster(const EngineParts& parts, ClusterCallbacks callbacks);
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // Serves all; in memory are those that wait or run. Throws InputError for a request that can never be served.
  void run(RequestSource& source);

  [[nodiscard]] const std::deque<Replica>& replicas() const { return replicas_; }

 private:
  // A prompt that is computed, on its way to a decode replica.
  struct Transfer {
    Seconds arrival;
    std::int64_t turn;  // orders those of one arrival
    Request request;
    VirtualEngine* reader = nullptr;  // whose it is, of a request that reads from the store
    bool operator>(const Transfer& other) const {
      return arrival != other.arrival ? arrival > other.arrival : turn > other.turn;
    }
  };
  struct Pool {
    std::vector<Replica*> replicas;
    Router router;
    std::vector<ReplicaLoad> loads;  // re-used
  };

  void add_replica(ReplicaRole role, Pool& pool);
  void switch_roles(Seconds time);
  void switch_role(Replica& replica);
  [[nodiscard]] Replica& replica_of(const VirtualEngine& engine);
  [[nodiscard]] VirtualEngine* earliest_engine();
  [[nodiscard]] std::optional<Request> read_next();
  void arrive(Transfer transfer);
  void route_arrival(Request request);
  struct Chosen {
    Replica& replica;
    VirtualEngine& engine;
  };
  // With the requests that read from the KV store before they are submitted.
  [[nodiscard]] ReplicaLoad load_of(const VirtualEngine& engine, Seconds time) const;
  [[nodiscard]] Chosen choose(Pool& pool, const Request& request, Seconds time);
  [[nodiscard]] int tokens_in_store(const Request& request);
  void read_or_submit(const Chosen& chosen, Request request);
  void begin(VirtualEngine& engine, Request request);
  void finish(Replica& replica, std::size_t engine, const Sequence& sequence);
  void send(Replica& replica, std::size_t engine, const Sequence& sequence, Prefilled& prefilled);
  void finish_decode(const Sequence& sequence);
  void answered(const Sequence& whole);

  const EngineParts& parts_;
  ClusterCallbacks callbacks_;
  RequestSource* source_ = nullptr;
  std::deque<Replica> replicas_;
  std::vector<VirtualEngine*> engines_;
  Pool arrivals_, transfers_;  // who takes new requests, who takes prompts that others computed
  std::priority_queue<Transfer, std::vector<Transfer>, std::greater<>> on_the_way_;
  std::unordered_map<SequenceId, Prefilled> prefilled_;
  std::unordered_set<std::uint64_t> stored_;                        // beginnings whose blocks the store has
  std::unordered_map<const VirtualEngine*, std::int64_t> reading_;  // requests that read from it, for each engine
  std::int64_t sent_ = 0, read_ = 0;
  int one_in_ = 1;
  std::optional<RoleController> roles_;
  std::vector<RoleLoad> role_loads_;  // re-used
  Seconds reader_free_;               // when the server has read the requests before
};

}  // namespace dculab::sim
