// A run as `vllm bench serve --save-result --save-detailed` writes it (vllm/benchmarks/serve.py), for all that reads
// such files.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/request.hpp"

namespace dculab::config {

struct VllmRun {
  std::string model;
  std::optional<double> requests_per_second{};  // absent: "inf"
  double burstiness = 1;
  std::optional<int> max_concurrency{};

  struct Request {
    Seconds sent;
    int prompt_tokens = 0;
    std::vector<Seconds> token_times;  // on the clock of `sent`
  };
  std::vector<Request> requests{};  // that were answered
  int failed = 0;                   // others

  // Precondition: it has at least one token.
  void add(const Sequence& sequence);
};

// One JSON object with means, medians, standard deviations and P90, P95, P99 of TTFT, TPOT, ITL and E2EL in ms.
// Precondition: it has requests.
[[nodiscard]] std::string vllm_serve_json(const VllmRun& run);

// Options of a program without their dashes, "max-num-seqs", and their values; an empty one: a flag.
using ProgramOptions = std::vector<std::pair<std::string, std::string>>;

// A parameter file of `vllm bench sweep serve` (vllm/benchmarks/sweep/serve.py, --serve-params and --bench-params): a
// JSON list with an object for each combination. Values that are numbers are written as such.
[[nodiscard]] std::string vllm_parameters_json(const std::vector<ProgramOptions>& combinations);

}  // namespace dculab::config
