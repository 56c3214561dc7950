// What benchmark tools measured of a server, beside what is predicted for it.
//
//   serving tools            the requests are served under a virtual clock, with the server's host times, as the tool
//                            sends them: when and as long as its file lists them, or of the mean lengths in gamma gaps
//                            (--request-rate, --burstiness), and no more at once than --max-concurrency
//   vllm bench latency,      all requests submitted at once, until the last ends
//   throughput
//   llama-bench              one prompt, decode steps of one sequence, or those behind a prompt, timed together
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/benchmarks/benchmark_result.hpp"
#include "config/benchmarks/vllm_writer.hpp"
#include "config/scenario_file.hpp"
#include "core/workload.hpp"
#include "sim/serving/simulated_server.hpp"
#include "sim/study/measured_run.hpp"

namespace dculab::study {

// Empty and 0: not given. What a file says itself need not be.
struct BenchmarkQuestion {
  std::vector<std::string> files;  // or folders, of which all results below are read
  // Results that are no file: of a server that was just measured, by what messages call it and its text.
  std::vector<std::pair<std::string, std::string>> texts{};
  std::string model, machine, stack;
  std::vector<std::string> set;                         // key=value, of a scenario: "kv_cache.block_size=32"
  int batch = 0, prompt_tokens = 0, output_tokens = 0;  // of a file that does not state them
};

// A result with what it is priced as.
struct BenchmarkCase {
  std::string file;
  config::BenchmarkResult result;
  sim::SimulatedServer server;
  RequestWorkload workload;                      // of what is served under a virtual clock
  std::optional<sim::MeasuredRun> measured_run;  // of what is not; its figure is the result's only one
  std::vector<std::string> notes;                // what was assumed

  [[nodiscard]] std::string title() const;  // "results/qps4.json, line 3"
};

// In the files' order. Throws InputError, with the option that would help, for what a file lacks.
[[nodiscard]] std::vector<BenchmarkCase> benchmark_cases(const BenchmarkQuestion& question);

// A run of the scenario's requests before any is served: what simulate --save-result fills.
[[nodiscard]] config::VllmRun vllm_run_of(const config::Scenario& scenario);

// Throws InputError where an option is given that only results of benchmark tools need.
void refuse_benchmark_options(const BenchmarkQuestion& question);

}  // namespace dculab::study
