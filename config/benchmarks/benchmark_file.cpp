#include "config/benchmarks/benchmark_file.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "config/benchmarks/json_results.hpp"
#include "config/benchmarks/llama_bench_results.hpp"
#include "config/json_documents.hpp"
#include "config/known_format.hpp"
#include "core/error.hpp"
#include "files/gzip.hpp"
#include "files/input.hpp"

namespace dculab::config {
namespace {

using ReadDocument = BenchmarkResult (*)(const Node& document, ProblemList& problems);

[[nodiscard]] ReadDocument reader_of(KnownFormat format) {
  switch (format) {
    case KnownFormat::vllm_serve:
      return read_vllm_serve;
    case KnownFormat::vllm_latency:
      return read_vllm_latency;
    case KnownFormat::vllm_throughput:
      return read_vllm_throughput;
    case KnownFormat::sglang_serving:
      return read_sglang_serving;
    case KnownFormat::aiperf:
      return read_aiperf;
    default:
      return nullptr;
  }
}

[[nodiscard]] std::vector<BenchmarkResult> read_documents(const std::string& file, const std::string& text,
                                                          ReadDocument read, ProblemList& problems) {
  std::vector<Node> documents;
  for (Node& document : json_documents(file, text)) {
    if (document.kind == NodeKind::list)  // vllm bench sweep's summary.json
      std::ranges::move(document.children, std::back_inserter(documents));
    else
      documents.push_back(std::move(document));
  }
  std::vector<BenchmarkResult> results;
  for (const Node& document : documents) {
    BenchmarkResult& result = results.emplace_back(read(document, problems));
    if (documents.size() > 1) result.label = "line " + std::to_string(document.place.line);
  }
  return results;
}

// Several benchmarks of one file: of different rates, say.
[[nodiscard]] std::vector<BenchmarkResult> read_all_guidellm(const std::string& file, const std::string& text,
                                                             ProblemList& problems) {
  std::vector<BenchmarkResult> results;
  for (const Node& document : json_documents(file, text)) {
    const Node* benchmarks = document.find("benchmarks");
    if (benchmarks == nullptr) continue;
    for (const Node& benchmark : benchmarks->children) {
      results.push_back(read_guidellm(benchmark, problems));
      if (benchmarks->children.size() > 1) results.back().label = "benchmark " + std::to_string(results.size());
    }
  }
  return results;
}

}  // namespace

std::vector<BenchmarkResult> read_benchmarks(const std::string& file, const std::string& text) {
  const std::optional<KnownFormat> format = recognize(text);
  if (!format)
    throw InputError(file,
                     "is no result of a benchmark that is known: vllm bench serve, latency or throughput, SGLang's "
                     "bench_serving, GuideLLM, AIPerf, llama-bench");
  ProblemList problems(file);
  std::vector<BenchmarkResult> results;
  if (const ReadDocument read = reader_of(*format))
    results = read_documents(file, text, read, problems);
  else if (*format == KnownFormat::guidellm)
    results = read_all_guidellm(file, text, problems);
  else if (*format == KnownFormat::llama_bench)
    results = read_llama_bench(file, text, problems);
  else
    throw InputError(file, "is " + std::string(description(*format)));
  problems.throw_if_any();
  std::erase_if(results, [](const BenchmarkResult& result) { return result.figures.empty(); });
  if (results.empty()) throw InputError(file, "has no results with figures to compare");
  return results;
}

std::vector<BenchmarkResult> read_benchmark_file(const std::string& path) {
  return read_benchmarks(path, files::unpacked(path, files::read_text(path, files::kLargestText), files::kLargestText));
}

}  // namespace dculab::config
