#include "study/scenario/idle_axes.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.hpp"

namespace dculab::study {
namespace {

// Sections that no price of a step depends on.
constexpr std::array<std::string_view, 12> kElsewhere{"schema",  "question",    "sweep", "measure",
                                                      "choose",  "objective",   "slo",   "pareto",
                                                      "compare", "constraints", "then",  "accuracy"};

// What decides which steps there are, and no step's price. max_num_seqs and max_num_batched_tokens take memory, so that
// fewer sequences fit.
constexpr std::array<std::string_view, 7> kScheduling{"kv_cache.skip",
                                                      "engine.batching",
                                                      "engine.preemption_mode",
                                                      "engine.swap_space",
                                                      "engine.enable_chunked_prefill",
                                                      "engine.enable_prefix_caching",
                                                      "engine.prefix_eviction"};

template <class Words>
[[nodiscard]] bool has(const Words& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

void refuse_idle(const config::Scenario& scenario, const std::string& key) {
  const std::string section = key.substr(0, key.find('.'));
  const bool served = scenario.workload.kind == config::WorkloadKind::serving;
  const bool counts = served && section == "slo" && key != "slo.share";
  if (has(kElsewhere, section) && !counts)
    throw InputError(scenario.file, "sweep." + key + ": changes no predicted time; remove it");
  if (has(kScheduling, key) && !served)
    throw InputError(scenario.file,
                     "sweep." + key + ": changes no predicted time of a step; serve requests, with workload.requests");
}

}  // namespace

void refuse_idle_axes(const config::Scenario& scenario) {
  for (const config::SweepAxis& axis : scenario.sweep) refuse_idle(scenario, axis.key);
  if (!scenario.compare) return;
  for (const config::Variant& variant : scenario.compare->variants)
    for (const auto& [key, value] : variant.changes)
      if (has(kElsewhere, key.substr(0, key.find('.'))) || has(kScheduling, key))
        throw InputError(scenario.file,
                         "compare.variants: " + variant.name + ": " + key + " changes no predicted time; remove it");
}

}  // namespace dculab::study
