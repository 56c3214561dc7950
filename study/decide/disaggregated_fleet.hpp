// How many replicas that prefill, and how many that decode, serve a load, and how each shares the model. The two pools
// may be on two kinds of machine.
//
//   layouts     of each pool, see study/decide/pool_layouts.hpp; every pair of the same KV dtype is a candidate
//   begin       replicas of a pool = requests per second asked for / 95 % of those that one serves in closed form;
//               80 % without a service level
//   simulated   both pools with the whole load, and the KV that crosses, under a virtual clock, the candidate with the
//               fewest devices first. One that misses the level gets replicas: for TTFT in the prefill pool, for TPOT
//               in the decode pool (study/decide/pool_growth.hpp)
//   chosen      the fewest devices; of as many 16-bit KV caches first, then the smallest mean latency
//
// At most kMostPoolSimulations are run. A candidate is not simulated that begins with more devices than another needs,
// or with as many and a latency that is larger even if nothing waits; nor are more than four with as many.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "study/decide/expected_service.hpp"
#include "study/decide/pool_service.hpp"

namespace dculab::study {

inline constexpr int kMostPoolSimulations = 48;

// Whose replicas are one pool.
struct PoolKind {
  sim::Machine machine;
  FleetOffer offer;
};

struct DisaggregatedQuestion {
  config::Scenario scenario;  // its deployment says how KV crosses and how requests are routed, and no more
  PoolKind prefill, decode;
  bool two_kinds = false;        // else both pools are on the first, and may share servers
  std::vector<Dtype> kv_dtypes;  // that both take, the preferred first
  int block_size = 16;           // tokens, that both take
  std::optional<int> sequences;  // for each scheduler, at most
  double rate = 0;               // requests per second of the whole load, > 0
  bool count_requests = false;   // the workload's own number of requests says nothing
};

// A candidate.
struct PoolPair {
  std::size_t prefill = 0, decode = 0;            // places among the pools' layouts
  int prefill_replicas = 0, decode_replicas = 0;  // that serve the load; where it was not simulated, at least
  std::optional<ReplicaService> simulated{};      // of all requests; absent: the choice is better, or why_not
  std::string why_not{};                          // does not serve
};

struct DisaggregatedFleet {
  FleetOffer prefill_offer, decode_offer;
  bool two_kinds = false;
  double rate = 0;                      // requests per second
  sim::SteadyLoad load;                 // its means
  std::vector<Layout> prefill, decode;  // `replicas`: of each candidate, at least
  std::vector<PoolPair> pairs;
  std::size_t chosen = 0;
  sim::SimulatedServer server;  // the chosen one
  ExpectedService expected;     // with it
  int simulations = 0;          // until it was found

  [[nodiscard]] const PoolPair& choice() const { return pairs[chosen]; }
  [[nodiscard]] const Layout& prefill_layout() const { return prefill[choice().prefill]; }
  [[nodiscard]] const Layout& decode_layout() const { return decode[choice().decode]; }
  [[nodiscard]] std::int64_t num_devices(const PoolPair& pair) const;
  [[nodiscard]] std::int64_t num_devices() const { return num_devices(choice()); }
  [[nodiscard]] int servers() const;  // that hold the choice
};

// Throws InputError where no candidate serves the load, with what each lacks, and where KV cannot cross.
[[nodiscard]] DisaggregatedFleet choose_pools(const DisaggregatedQuestion& question, const ModelShape& model,
                                              const RequestWorkload& workload);

}  // namespace dculab::study
