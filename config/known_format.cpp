#include "config/known_format.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "config/json_documents.hpp"
#include "files/tar.hpp"

namespace dculab::config {
namespace {

// What the text begins with, after spaces.
struct Beginning {
  std::string_view bytes;
  KnownFormat format;
};
constexpr std::array kBeginnings{
    Beginning{"GGUF", KnownFormat::gguf},
    Beginning{"SQLite format 3", KnownFormat::sqlite},
    Beginning{"\x1f\x8b", KnownFormat::gzip},
    Beginning{"schema:", KnownFormat::yaml},
    Beginning{"CREATE TABLE IF NOT EXISTS test", KnownFormat::llama_bench},
    Beginning{"CREATE TABLE IF NOT EXISTS llama_bench", KnownFormat::llama_bench},
};

// All of these keys are among an object's, or columns among the first line's. The first row that fits counts.
struct Names {
  std::array<std::string_view, 3> all;
  KnownFormat format;
};
constexpr std::array kFormatKeys{
    Names{{"request_throughput", "input_config"}, KnownFormat::aiperf},
    Names{{"request_throughput", "time_to_first_token"}, KnownFormat::aiperf},
    Names{{"mean_e2e_latency_ms", "total_output_tokens_retokenized"}, KnownFormat::sglang_serving},
    Names{{"request_throughput", "total_input_tokens"}, KnownFormat::vllm_serve},
    Names{{"avg_latency", "latencies"}, KnownFormat::vllm_latency},
    Names{{"elapsed_time", "num_requests"}, KnownFormat::vllm_throughput},
    Names{{"benchmarks"}, KnownFormat::guidellm},
    Names{{"build_commit", "avg_ts"}, KnownFormat::llama_bench},
    Names{{"results", "versions"}, KnownFormat::lm_eval},
    Names{{"results", "config_general"}, KnownFormat::lm_eval},
    Names{{"traceEvents"}, KnownFormat::chrome_trace},
    Names{{"model_type"}, KnownFormat::model_config},
    Names{{"conversations"}, KnownFormat::conversations},
    Names{{"timestamp", "input_length"}, KnownFormat::request_trace},
    Names{{"schema", "machine"}, KnownFormat::trace},
};
constexpr std::array kColumns{
    Names{{"build_commit", "avg_ts"}, KnownFormat::llama_bench},
    Names{{"id", "kind", "machine"}, KnownFormat::points},
    Names{{"TIMESTAMP", "ContextTokens"}, KnownFormat::request_trace},
    Names{{"Timestamp", "Request tokens"}, KnownFormat::request_trace},
    Names{{"arrived_at", "num_prefill_tokens"}, KnownFormat::request_trace},
    Names{{"Kernel_Name", "Start_Timestamp"}, KnownFormat::kernel_table},
    Names{{"KernelName", "BeginNs"}, KnownFormat::kernel_table},
};

[[nodiscard]] std::optional<KnownFormat> match(std::span<const Names> table,
                                               const std::vector<std::string_view>& names) {
  const auto has = [&names](std::string_view name) { return name.empty() || std::ranges::count(names, name) > 0; };
  for (const Names& row : table)
    if (std::ranges::all_of(row.all, has)) return row.format;
  return std::nullopt;
}

// Cells of the first line, without quotes.
[[nodiscard]] std::vector<std::string_view> columns_of(std::string_view text) {
  std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  std::vector<std::string_view> columns;
  while (!line.empty()) {
    const std::size_t comma = std::min(line.find(','), line.size());
    std::string_view cell = line.substr(0, comma);
    if (cell.size() > 1 && cell.starts_with('"') && cell.ends_with('"')) cell = cell.substr(1, cell.size() - 2);
    columns.push_back(cell);
    line.remove_prefix(std::min(comma + 1, line.size()));
  }
  return columns;
}

}  // namespace

std::optional<KnownFormat> recognize(std::string_view text) {
  if (files::is_tar(text)) return KnownFormat::results_archive;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  for (const Beginning& each : kBeginnings)
    if (text.starts_with(each.bytes)) return each.format;
  if (text.starts_with('{') || text.starts_with('[')) return match(kFormatKeys, first_keys(text));
  return match(kColumns, columns_of(text));
}

bool is_benchmark(KnownFormat format) { return format <= KnownFormat::llama_bench; }

std::string_view description(KnownFormat format) {
  switch (format) {
    case KnownFormat::vllm_serve:
      return "a result of vllm bench serve; give it to `dculab validate` or `dculab calibrate`";
    case KnownFormat::vllm_latency:
      return "a result of vllm bench latency; give it to `dculab validate` or `dculab calibrate`";
    case KnownFormat::vllm_throughput:
      return "a result of vllm bench throughput; give it to `dculab validate` or `dculab calibrate`";
    case KnownFormat::sglang_serving:
      return "a result of SGLang's bench_serving; give it to `dculab validate` or `dculab calibrate`";
    case KnownFormat::guidellm:
      return "a result of GuideLLM; give it to `dculab validate` or `dculab calibrate`";
    case KnownFormat::aiperf:
      return "a result of AIPerf; give it to `dculab validate` or `dculab calibrate`";
    case KnownFormat::llama_bench:
      return "a result of llama-bench; give it to `dculab validate` or `dculab calibrate`";
    case KnownFormat::lm_eval:
      return "a result of lm-eval; name it as accuracy.file in a scenario";
    case KnownFormat::trace:
      return "a trace; give it to `dculab calibrate` or `dculab validate`";
    case KnownFormat::results_archive:
      return "an archive; if scripts/gpu-validate packed it, give it to `dculab calibrate` or `dculab validate`";
    case KnownFormat::yaml:
      return "a machine, stack or scenario; give it to `dculab show`";
    case KnownFormat::points:
      return "a table of published points; give it to `dculab validate --points`";
    case KnownFormat::model_config:
      return "a model's config.json; give its folder as --model";
    case KnownFormat::gguf:
      return "a model in GGUF; give it as --model";
    case KnownFormat::sqlite:
      return "an SQLite database; if rocprofv3 or nsys wrote it, give it to `dculab import`";
    case KnownFormat::gzip:
      return "a gzip file; unpack it first";
    case KnownFormat::chrome_trace:
      return "a trace of PyTorch's profiler or hipprof; give it to `dculab import`";
    case KnownFormat::kernel_table:
      return "a profiler's table of kernels; give it to `dculab import`";
    case KnownFormat::request_trace:
      return "a record of requests; name it as workload.file in a scenario";
    case KnownFormat::conversations:
      return "conversations in ShareGPT's format; name them as workload.file in a scenario";
  }
  return "a file of another program";
}

}  // namespace dculab::config
