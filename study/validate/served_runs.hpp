// Served runs that others measured, simulated: our errors beside those of the rivals whose predictions were published.
//
// A run's requests come as its load generator sends them (kubernetes-sigs/inference-perf, load type `constant`): in
// each stage rate x time requests, in exponential gaps that are stretched to fill the stage. Its prompts are a pool,
// made before the run and used in turn, so that a server that caches prefixes computes each of them once. How many
// there are, and how much of a prompt is shared, is not in the file and so a choice.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/serving_runs_file.hpp"
#include "core/workload.hpp"
#include "sim/calibration/errors.hpp"
#include "sim/hardware/stack.hpp"
#include "study/validate/scores.hpp"

namespace dculab::study {

struct ServedChoices {
  std::string stack = "vllm";
  int prompts = 45;                    // 9 system prompts for 5 users each, as inference-sim's example has it
  std::optional<int> prefix_tokens{};  // of a prompt, that repeat; absent: the whole prompt does
  std::uint64_t seed = 1;
  int threads = 0;                            // 0: all cores
  std::function<void(sim::Stack&)> change{};  // of what the stack's file says
};

struct ServedRow {
  config::ServedFigure figure;
  Seconds predicted;

  [[nodiscard]] double error() const { return predicted / figure.measured - 1; }
};

// Of the rows that `who` predicts; a run's stages count as part of it.
struct ServedScore {
  std::string who;  // "dculab", or a rival
  config::ServedMetric metric;
  sim::ErrorSummary error;
};

// Of the rows that a rival and dculab predict both.
struct CommonScore {
  std::string rival;
  config::ServedMetric metric;
  sim::ErrorSummary ours, theirs;
};

struct ServedRuns {
  std::vector<ServedRow> rows;
  std::vector<LeftOutRow> unpriced;
  std::vector<ServedScore> scores;  // ours first
  std::vector<CommonScore> common;
};

// The requests of a load.
[[nodiscard]] RequestWorkload requests_of(const config::ServedLoad& load, const ServedChoices& choices);

// Of rows that are priced, ours; of the rivals, of all rows that they predict. Rows of a single stage are in neither.
[[nodiscard]] std::vector<ServedScore> score_served(std::span<const ServedRow> rows,
                                                    std::span<const config::ServedFigure> figures);
[[nodiscard]] std::vector<CommonScore> score_common(std::span<const ServedRow> rows);

// The shipped model that a name on the Hub means, "meta-llama/Llama-2-70b-hf": the longest that it begins with. Throws
// InputError where there is none.
[[nodiscard]] std::string shipped_model(const std::string& hub_name);

// What its requests ask for where they name no sampling: vLLM takes it from the model's generation_config.json.
[[nodiscard]] SamplingParams default_sampling(const std::string& hub_name);

// Throws InputError where nothing can be priced.
[[nodiscard]] ServedRuns validate_served(const std::vector<config::ServedFigure>& figures,
                                         const ServedChoices& choices);

}  // namespace dculab::study
