// Readers of single tools' JSON; benchmark_file.hpp chooses among them. Keys that they do not know are left alone,
// since every version of a tool adds some. Each reports what is wrong to `problems`.
#pragma once

#include "config/benchmarks/benchmark_result.hpp"
#include "config/map_reader.hpp"
#include "fields/node.hpp"

namespace dculab::config {

// One document of `vllm bench serve` (vllm/benchmarks/serve.py) or of its forerunner benchmark_serving.py.
[[nodiscard]] BenchmarkResult read_vllm_serve(const Node& document, ProblemList& problems);
// One line of `python -m sglang.bench_serving`, which began as a copy of vLLM's and has most of its keys.
[[nodiscard]] BenchmarkResult read_sglang_serving(const Node& document, ProblemList& problems);

// vllm/benchmarks/latency.py and throughput.py.
[[nodiscard]] BenchmarkResult read_vllm_latency(const Node& document, ProblemList& problems);
[[nodiscard]] BenchmarkResult read_vllm_throughput(const Node& document, ProblemList& problems);

// One of the benchmarks of GuideLLM's benchmarks.json (vllm-project/guidellm, versions 0.2 to 0.8). Its inter-token
// latency is over all tokens; its time per output token counts the first one and is left out.
[[nodiscard]] BenchmarkResult read_guidellm(const Node& benchmark, ProblemList& problems);

// AIPerf's profile_export_aiperf.json (ai-dynamo/aiperf). Its inter-token latency is a request's mean: TPOT.
[[nodiscard]] BenchmarkResult read_aiperf(const Node& document, ProblemList& problems);

}  // namespace dculab::config
