// How many devices serve a load, and how they share the model: tensor, pipeline and expert parallelism, and replicas.
//
//   layouts     every tensor x pipeline parallel size whose product divides the devices of a server or is a power of
//               two; of a mixture of experts every expert parallel size, too. Where none holds the model, those of two,
//               four and eight servers
//   begin       replicas = 0.75 * requests per second asked for / those that one serves in closed form within the TPOT
//   simulated   one replica with its part of the requests, under a virtual clock; replicas are added until enough of
//               the requests meet the service level, at no more than 95 % of what a replica serves while its queue
//               never empties. Few requests rank the layouts; the chosen one serves many, in a steady state
//   chosen      the fewest devices; of as many 16-bit KV caches first, then the smallest mean latency, and the first in
//               order (fewer devices for a replica, fewer stages) where that is a tie
//
// A layout that would begin with more devices than another needs is not simulated. Without a service level a replica
// takes kOfferedShare of what it serves steadily. Without a rate the devices are a given, and the layout that serves
// the most output tokens per second in closed form is chosen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "core/workload.hpp"
#include "sim/study/serving_setting.hpp"
#include "study/decide/replica_count.hpp"
#include "study/decide/replica_layouts.hpp"
#include "study/decide/serving_case.hpp"

namespace dculab::study {

struct FleetQuestion {
  config::Scenario scenario;  // without a deployment
  FleetOffer offer;
  std::vector<Dtype> kv_dtypes;   // to choose from, the preferred first
  std::optional<int> block_size;  // absent: the stack's own
  std::optional<int> sequences;   // for each scheduler, at most
  std::optional<double> rate;     // requests per second of the whole load; absent: as many as can be
  bool count_requests = false;    // the workload's own number of requests says nothing
};

struct FleetChoice {
  FleetOffer offer;
  double rate = 0;               // requests per second asked for; 0: as many as can be
  bool is_largest_rate = false;  // none was asked for: `rate` is the largest that meets the service level
  std::vector<Layout> layouts;
  std::size_t chosen = 0;

  [[nodiscard]] const Layout& choice() const { return layouts[chosen]; }
  [[nodiscard]] int servers() const;
  // Other layouts that are worth measuring, four at most: with a rate those that need the fewest devices as far as is
  // known, else those that serve the most.
  [[nodiscard]] std::vector<std::size_t> rivals() const;
};

// Throws InputError where none of the layouts serves the load, with what each lacks.
[[nodiscard]] FleetChoice choose_fleet(const FleetQuestion& question, const sim::Machine& machine,
                                       const ModelShape& model, const RequestWorkload& workload);

}  // namespace dculab::study
