// How many replicas of a layout serve a load, with how many sequences at a time.
//
// The closed form takes as many sequences as meet TPOT while all of them run all the time (serving_setting.hpp).
// Requests that arrive at random seldom fill a batch, and wait when they do. Where these waits alone miss the service
// level, half as many more are tried, and half as many again, as long as more of the requests meet it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/workload.hpp"
#include "sim/study/serving_setting.hpp"
#include "study/decide/replica_layouts.hpp"
#include "study/decide/replica_service.hpp"

namespace dculab::study {

inline constexpr double kOfferedShare = 0.8;  // of what is served steadily, where the workload has no rate
inline constexpr int kMostReplicas = 1024;

// Of the rate that a replica serves while its queue never empties: closer to it waits grow without limit, which runs of
// some hundred requests hide.
inline constexpr double kMostUtilization = 0.95;

struct Layout {
  sim::ReplicaDevices devices;  // of a replica
  sim::Setting setting;         // KV dtype, block size
  sim::Served served{};         // by a replica, in closed form
  int replicas = 0;             // that serve the load; where it was not simulated, at least; 0: none do
  std::optional<ReplicaService> simulated{};
  std::string why_not{};                         // does not serve
  std::optional<Seconds> missed{};               // the time that is longer than the service level allows
  std::optional<std::int64_t> needed_devices{};  // at least; more than are offered

  [[nodiscard]] std::int64_t num_devices() const { return std::int64_t{replicas} * devices.devices(); }
};

// How many requests are simulated where the workload's own number says nothing. Few rank layouts; a run must be many
// times as long as a request for its service to be that of a steady state.
enum class Sample : std::uint8_t { few, many };

// Of one replica that has `at_a_time` requests on average, by Little's law.
[[nodiscard]] int sampled_requests(double at_a_time, Sample sample);

// A layout with what its replica is.
struct Tried {
  Layout layout;
  sim::ServingCase serving;
  Sample sample = Sample::few;  // that its `simulated` is of
};

// The whole load, and what must hold.
struct AskedLoad {
  const RequestWorkload& workload;
  const sim::SteadyLoad& load;  // its means
  const ServiceLevel& slo;
  std::optional<double> rate;   // requests per second; absent: as many as can be
  bool count_requests = false;  // the workload's own number of requests says nothing
};

// With which the search begins. Precondition: asked.rate.
[[nodiscard]] int fewest_replicas(const Layout& layout, const AskedLoad& asked);

// What the requests of one of so many replicas see, with the sequences at a time with which most of them meet the
// level; nothing where none carries its part. Throws InputError for a request that cannot be served. Precondition:
// asked.rate.
[[nodiscard]] std::optional<ReplicaService> best_service(const Tried& tried, const AskedLoad& asked, int replicas,
                                                         Sample sample);

// Sets the layout's `simulated`, and `served` to that of its sequences at a time.
void take_service(Tried& tried, const ReplicaService& service);

// Whether requests that come one after the other meet the service level; else the layout's why_not says what they miss.
[[nodiscard]] bool meets_level_alone(Tried& tried, const AskedLoad& asked);

// Sets the layout's replicas, and what their requests see, beginning with its replicas; one more than `most_replicas`
// where so many do not meet the level; 0 and why_not where none do, or where they cannot serve a request. Doubled, then
// bisected. `served` becomes that of the sequences at a time that it takes. Precondition: asked.rate.
void add_replicas(Tried& tried, const AskedLoad& asked, int most_replicas, Sample sample);

// Sequences at a time with which most requests meet the level, on so many replicas: those of `served`, or more. Throws
// InputError for a request that cannot be served. Precondition: asked.rate.
[[nodiscard]] int sequences_for(const Tried& tried, const AskedLoad& asked, int replicas);

}  // namespace dculab::study
