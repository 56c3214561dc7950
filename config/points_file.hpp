// Measurements that others have published, as CSV: what validation is scored on where no trace exists.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dculab::config {

enum class PointKind : std::uint8_t {
  request_latency,      // s: `batch` requests of prompt_tokens + output_tokens, together
  ttft,                 // s
  offline_output_rate,  // tokens/s
  prefill_rate,         // tokens/s
  decode_rate,          // tokens/s
  matmul,               // s: y[m, n] = x[m, k] w[n, k]^T
  attention_prefill,    // s
  attention_decode,     // s
  all_reduce,           // s
  copy_bandwidth,       // GB/s
  cache_bandwidth,      // GB/s
  cache_latency,        // s
  launch_overhead,      // s
  peak_rate,            // FLOP/s
  fused_moe,            // s
  serving_output_rate,  // tokens/s
};
[[nodiscard]] std::string_view name(PointKind kind);

// Whether what is measured is the hardware's alone, whatever program asks for it.
[[nodiscard]] bool is_of_hardware(PointKind kind);

struct PublishedPoint {
  int line = 0;  // in the file
  std::string id;
  PointKind kind = PointKind::request_latency;
  std::string machine;
  int devices = 1;
  std::string software;
  std::string model, weights, kv_dtype;  // as published, "" = not stated
  std::optional<int> kv_block_size, batch, prompt_tokens, output_tokens, context_tokens;
  std::optional<int> m, n, k;                           // matmul, fused_moe
  std::optional<int> num_experts, num_experts_per_tok;  // fused_moe: the words E=8 and top-k=2 of its notes
  std::optional<std::int64_t> bytes;                    // column `m` of the kinds that move bytes
  std::optional<int> heads, kv_heads, head_size;        // attention
  double value = 0;                                     // in `unit`
  std::string unit;                                     // one of its kind's
  std::string clock, kernel;                            // as published, "" = not stated
  std::string source, notes;
};

// Throws InputError with every problem as file:line. Columns may stand in any order; unknown ones are refused.
[[nodiscard]] std::vector<PublishedPoint> read_points(const std::string& file, const std::string& text);
[[nodiscard]] std::vector<PublishedPoint> read_points_file(const std::string& path);

}  // namespace dculab::config
