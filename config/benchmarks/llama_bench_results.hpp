// The rows of llama-bench (ggml-org/llama.cpp, tools/llama-bench): -o json, jsonl, csv or sql.
#pragma once

#include <string>
#include <vector>

#include "config/benchmarks/benchmark_result.hpp"
#include "config/map_reader.hpp"

namespace dculab::config {

// Each row is a run: "pp512" a prompt in batches of n_ubatch, "tg128 @ d4096" steps behind 4096 tokens that are cached,
// "pp512+tg128" both.
[[nodiscard]] std::vector<BenchmarkResult> read_llama_bench(const std::string& file, const std::string& text,
                                                            ProblemList& problems);

}  // namespace dculab::config
