// What a benchmark tool measured of a serving program: the requests that it sent and how long they took.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/workload.hpp"

namespace dculab::config {

enum class BenchmarkTool : std::uint8_t {
  vllm_serve,
  vllm_latency,
  vllm_throughput,
  sglang_serving,
  guidellm,
  aiperf,
  llama_bench,
};
[[nodiscard]] std::string_view name(BenchmarkTool tool);  // "vllm bench serve"

// Latencies as in core/serving_metrics.hpp. Rates are over the run's duration.
enum class BenchmarkMetric : std::uint8_t {
  ttft,
  tpot,
  itl,
  latency,
  duration,      // of all requests
  request_rate,  // 1/s
  output_rate,   // tokens/s
  total_rate,    // tokens/s, prompts too
  prefill_rate,  // tokens/s of a prompt alone
  decode_rate,   // tokens/s of steps alone
};
[[nodiscard]] std::string_view name(BenchmarkMetric metric);  // "ttft"
[[nodiscard]] bool is_rate(BenchmarkMetric metric);

struct BenchmarkFigure {
  BenchmarkMetric metric = BenchmarkMetric::ttft;
  std::optional<double> quantile{};  // of a latency over the requests; absent: the mean, or there is only one
  double value = 0;                  // s, or 1/s
  double deviation = 0;              // of repeated runs, one standard deviation; 0: not stated

  friend bool operator==(const BenchmarkFigure&, const BenchmarkFigure&) = default;
};
[[nodiscard]] std::string title(const BenchmarkFigure& figure);  // "ttft_p90", "ttft_mean", "duration"

// The burstiness of gaps that hardly differ: requests at a constant rate.
inline constexpr double kEvenGaps = 1e6;

// Lengths that were drawn, all alike likely.
struct LengthRange {
  int least = 1, most = 1;
};

// One run of a tool.
struct BenchmarkResult {
  BenchmarkTool tool = BenchmarkTool::vllm_serve;
  std::string label;       // tells it from the file's others: "line 3", "pp512"; "" where it is alone
  std::string model{};     // as the file names it; "": it does not
  std::string program{};   // the same: "vllm", "sglang", "llama.cpp"
  std::string hardware{};  // the same: "AMD Instinct MI50/MI60"

  int requests = 1;  // that were answered
  int failed = 0;
  std::optional<double> requests_per_second{};  // absent: all at once, or as recorded
  double burstiness = 1;
  std::optional<int> max_concurrency{};
  // What of the load has no prediction: "ramp_up_strategy"; empty: nothing. Recorded arrivals can be replayed all the
  // same.
  std::string unmodelled{};
  bool is_load_known = true;                                  // false: the file does not say how requests were sent
  std::optional<double> prompt_tokens{}, output_tokens{};     // means; absent: the file does not say
  std::optional<LengthRange> prompt_range{}, output_range{};  // where the file tells how they were drawn
  std::optional<int> prefix_tokens{};                         // of a prompt, computed before anything is timed
  std::vector<RecordedRequest> recorded{};  // where the file lists them; all at 0 without has_arrivals
  bool has_arrivals = false;

  // What the file says of the server, by keys of a scenario: "engine.max_num_seqs" -> "64".
  std::vector<std::pair<std::string, std::string>> server{};

  // llama-bench's, where it says so. Its devices have a share of the layers each.
  int devices = 1;
  std::optional<int> max_num_batched_tokens{};
  std::string weights{}, kv_cache_dtype{};

  std::vector<BenchmarkFigure> figures{};
};

}  // namespace dculab::config
