// Files of other programs, told apart by their content, so that a command which cannot use one says what it is and who
// can: "this is a result of vllm bench serve; give it to dculab validate or calibrate".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dculab::config {

enum class KnownFormat : std::uint8_t {
  vllm_serve,
  vllm_latency,
  vllm_throughput,
  sglang_serving,
  guidellm,
  aiperf,
  llama_bench,
  lm_eval,
  trace,
  results_archive,
  yaml,
  points,
  model_config,
  gguf,
  sqlite,
  gzip,
  chrome_trace,
  kernel_table,
  request_trace,
  conversations,
};

// By a text's beginning, and of JSON by the keys of its first object. Nothing for what is not known.
[[nodiscard]] std::optional<KnownFormat> recognize(std::string_view text);

// Of requests or steps that were timed: config/benchmarks reads them.
[[nodiscard]] bool is_benchmark(KnownFormat format);

// "a result of vllm bench serve; give it to `dculab validate` or `dculab calibrate`"
[[nodiscard]] std::string_view description(KnownFormat format);

}  // namespace dculab::config
