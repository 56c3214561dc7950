// Reads what benchmark tools wrote; which tool it was is found by content.
//
//   vllm bench serve         JSON of --save-result, with --save-detailed or without; JSON Lines of --append-result
//   vllm bench latency       JSON of --output-json; a shape that the file lacks must be known otherwise
//   vllm bench throughput    the same
//   sglang.bench_serving     JSON Lines of --output-file
//   guidellm benchmark       benchmarks.json
//   aiperf profile           profile_export_aiperf.json
//   llama-bench              -o json, jsonl, csv or sql
//
// Any of them may be packed by gzip. The formats, by version, with their sources: tests/data/foreign/FORMATS.md.
#pragma once

#include <string>
#include <vector>

#include "config/benchmarks/benchmark_result.hpp"

namespace dculab::config {

// In the file's order, one at least. Throws InputError with what is wrong; what is recognised as another kind of file
// is named, with the command that takes it (config/known_format.hpp).
[[nodiscard]] std::vector<BenchmarkResult> read_benchmarks(const std::string& file, const std::string& text);
[[nodiscard]] std::vector<BenchmarkResult> read_benchmark_file(const std::string& path);

}  // namespace dculab::config
