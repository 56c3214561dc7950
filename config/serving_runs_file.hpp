// Served runs that others measured, with what other simulators predicted for them, as CSV: a row is one figure of a
// run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"

namespace dculab::config {

enum class ServedMetric : std::uint8_t { e2e_mean, e2e_p90, e2e_p99, itl_mean, ttft_mean, ttft_p90, ttft_p99 };
inline constexpr int kServedMetrics = 7;
[[nodiscard]] std::string_view name(ServedMetric metric);

enum class Stated : std::uint8_t { no, yes, unknown };

// A server and the requests that were sent to it.
struct ServedLoad {
  std::string machine;
  int devices = 1;
  std::string model, weights;
  int prompt_tokens = 1, output_tokens = 1;  // means
  std::vector<double> requests_per_second;   // of each stage
  Seconds stage;                             // how long each lasts
  int max_num_seqs = 1, max_num_batched_tokens = 1;
  double gpu_memory_utilization = 0.9;
  bool enable_prefix_caching = false;

  friend bool operator==(const ServedLoad&, const ServedLoad&) = default;
};

struct ServedFigure {
  int line = 0;  // in the file
  std::string experiment, software, workload;
  std::string stage;  // "all", or the stage's number
  ServedLoad load;
  Stated cpu_offload = Stated::unknown;
  ServedMetric metric = ServedMetric::e2e_mean;
  Seconds measured;
  std::map<std::string, Seconds> predicted_by;  // by rival, of those that predict it
};

// Throws InputError with every problem as file:line. Columns may stand in any order; unknown ones are refused, except
// that each `predicted_by_NAME` is a rival's.
[[nodiscard]] std::vector<ServedFigure> read_serving_runs(const std::string& file, const std::string& text);
[[nodiscard]] std::vector<ServedFigure> read_serving_runs_file(const std::string& path);

}  // namespace dculab::config
