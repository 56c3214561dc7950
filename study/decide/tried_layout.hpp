// A layout of a replica with its sizes, before what it serves is known.
#pragma once

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

// Why a layout whose best batch is 0 serves nothing.
[[nodiscard]] std::string why_none(const sim::Served& served);

// "misses the slo: TP 1; TP 2. needs 16 devices or more: TP 4": each reason once, with the layouts that it is of.
// `found`: pairs of a reason and a layout.
[[nodiscard]] std::string reasons_text(const std::vector<std::pair<std::string, std::string>>& found);

}  // namespace dculab::study
