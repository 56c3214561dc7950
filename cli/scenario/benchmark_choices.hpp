// Options of `validate` and `calibrate` for results of benchmark tools: what their files do not say.
#pragma once

#include "study/benchmarks/benchmark_cases.hpp"

namespace CLI {
class App;
}

namespace dculab::cli {

inline constexpr const char* kMeasuredFilesHelp =
    "Results of vllm bench, SGLang's bench_serving, GuideLLM, AIPerf or llama-bench, folders of them, traces, or "
    "results.tar.gz of scripts/gpu-validate";

// All but the files and --machine.
void add_benchmark_choices(CLI::App& command, study::BenchmarkQuestion& question);

}  // namespace dculab::cli
