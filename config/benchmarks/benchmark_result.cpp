#include "config/benchmarks/benchmark_result.hpp"

#include "config/number_text.hpp"

namespace dculab::config {

std::string_view name(BenchmarkTool tool) {
  switch (tool) {
    case BenchmarkTool::vllm_serve:
      return "vllm bench serve";
    case BenchmarkTool::vllm_latency:
      return "vllm bench latency";
    case BenchmarkTool::vllm_throughput:
      return "vllm bench throughput";
    case BenchmarkTool::sglang_serving:
      return "sglang.bench_serving";
    case BenchmarkTool::guidellm:
      return "guidellm";
    case BenchmarkTool::aiperf:
      return "aiperf";
    case BenchmarkTool::llama_bench:
      return "llama-bench";
  }
  return "";
}

std::string_view name(BenchmarkMetric metric) {
  switch (metric) {
    case BenchmarkMetric::ttft:
      return "ttft";
    case BenchmarkMetric::tpot:
      return "tpot";
    case BenchmarkMetric::itl:
      return "itl";
    case BenchmarkMetric::latency:
      return "latency";
    case BenchmarkMetric::duration:
      return "duration";
    case BenchmarkMetric::request_rate:
      return "requests_per_second";
    case BenchmarkMetric::output_rate:
      return "output_tokens_per_second";
    case BenchmarkMetric::total_rate:
      return "total_tokens_per_second";
    case BenchmarkMetric::prefill_rate:
      return "prefill_tokens_per_second";
    case BenchmarkMetric::decode_rate:
      return "decode_tokens_per_second";
  }
  return "";
}

bool is_rate(BenchmarkMetric metric) { return metric >= BenchmarkMetric::request_rate; }

std::string title(const BenchmarkFigure& figure) {
  const std::string metric(name(figure.metric));
  if (figure.quantile) return metric + "_p" + exact_number(100 * *figure.quantile);
  return figure.metric < BenchmarkMetric::duration ? metric + "_mean" : metric;
}

}  // namespace dculab::config
