// The replicas of a deployment in one virtual time. The engine whose clock is earliest steps next; a request is routed
// when its time comes before all of theirs, so a router sees every replica as it is at that time.
//
// A server reads one request after the other, before any engine has it (Stack::reading_time).
//
// Disaggregated, a request's prompt is computed, and its first token sampled, at a prefill replica, whose blocks are
// free again from then on (the KV cache waits outside of them). It leaves when what this replica sent before has
// left, and is routed to a decode replica when it has arrived.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/workload.hpp"
#include "sim/serving/virtual_engine.hpp"

namespace dculab::sim {

struct ClusterCallbacks {
  std::function<void(const Sequence&)> on_finished{};  // as if one server had served it
  std::function<void(const ServedStep&, int engine)> on_step{};
};

enum class ReplicaRole : std::uint8_t { both, prefill, decode };
[[nodiscard]] std::string_view name(ReplicaRole role);

struct Replica {
  ReplicaRole role = ReplicaRole::both;
  StageTimes stages{};
  std::deque<VirtualEngine> engines{};  // one for each stage
  Seconds link_free{};                  // of a prefill replica, towards decode replicas
  std::int64_t finished = 0;            // requests
};

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
    bool operator>(const Transfer& other) const {
      return arrival != other.arrival ? arrival > other.arrival : turn > other.turn;
    }
  };
  // What the decode replica is not told.
  struct Prefilled {
    Seconds arrival, first_token;
    int max_tokens = 0, num_cached_tokens = 0, num_preemptions = 0;
  };
  struct Pool {
    std::vector<Replica*> replicas;
    Router router;
    std::vector<Load> loads;  // re-used
  };

  void add_replica(ReplicaRole role, Pool& pool);
  [[nodiscard]] VirtualEngine* earliest_engine();
  [[nodiscard]] std::optional<Request> read_next(RequestSource& source);
  void route_arrival(Request request);
  void submit(Pool& pool, Request request, Seconds time);
  void finish(Replica& replica, const Sequence& sequence);
  void send(Replica& replica, const Sequence& sequence, Prefilled& prefilled);
  void finish_decode(const Sequence& sequence);

  const EngineParts& parts_;
  ClusterCallbacks callbacks_;
  std::deque<Replica> replicas_;
  std::vector<VirtualEngine*> engines_;
  Pool arrivals_, transfers_;  // who takes new requests, who takes prompts that others computed
  std::priority_queue<Transfer, std::vector<Transfer>, std::greater<>> on_the_way_;
  std::unordered_map<SequenceId, Prefilled> prefilled_;
  std::int64_t sent_ = 0;
  Seconds reader_free_;  // when the server has read the requests before
};

}  // namespace dculab::sim
