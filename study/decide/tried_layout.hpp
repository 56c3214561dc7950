// A layout of a replica with its sizes, before what it serves is known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/scenario_file.hpp"
#include "study/decide/replica_count.hpp"

namespace dculab::study {

struct LayoutQuestion {
  const config::Scenario& scenario;
  const sim::Machine& machine;
  const ModelShape& model;
  const sim::SteadyLoad& load;
  std::optional<int> block_size{};  // tokens; absent: the stack's own
};

// Its `served` is not filled in. Nothing, and why_not, where the devices cannot share the model so.
[[nodiscard]] std::optional<Tried> tried_layout(const LayoutQuestion& question, const sim::ReplicaDevices& devices,
                                                Dtype kv_cache_dtype, std::string& why_not);

// Sets why a layout whose best batch is 0 serves nothing.
void set_why_none(Layout& layout);

struct Refusal {
  std::string reason;
  std::string layout;                            // in words
  std::optional<Seconds> missed{};               // the time that is longer than the service level allows
  std::optional<std::int64_t> needed_devices{};  // at least; more than are offered
};

// "misses the slo: TP 1; TP 2. one request alone misses slo.ttft, 330 ms at best: TP 4": each reason once, with the
// layouts that it is of, or, where each misses a time or needs more devices, the one that does so by least.
[[nodiscard]] std::string reasons_text(const std::vector<Refusal>& found);

}  // namespace dculab::study
