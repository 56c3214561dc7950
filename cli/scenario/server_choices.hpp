// A running server that a command measures first: `validate --server URL`.
#pragma once

#include <string>

#include "study/benchmarks/benchmark_cases.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace dculab::cli {

struct ServerChoices {
  std::string url;           // empty: none is measured
  std::string served_model;  // its name there
  int requests = 100;
  int max_concurrency = 0;  // 0: all at once
  std::string save_result;  // a file for what was measured
};

// Returns --server.
CLI::Option* add_server_choices(CLI::App& command, ServerChoices& choices);

// Loads the server with requests of question.prompt_tokens and output_tokens (256 and 128 where they are not given),
// and makes what it measured one of the question's results. Throws InputError.
void measure_server(const ServerChoices& choices, study::BenchmarkQuestion& question);

}  // namespace dculab::cli
