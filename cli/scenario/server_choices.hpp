// A running server that a command measures first: `validate --server URL`.
#pragma once

#include <string>

#include "bindings/http/server_measurement.hpp"
#include "study/benchmarks/benchmark_cases.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace dculab::cli {

struct ServerChoices {
  http::ServerQuestion server;  // without a URL none is measured
  std::string save_result;      // a file for what was measured
};

// Returns --server.
CLI::Option* add_server_choices(CLI::App& command, ServerChoices& choices);

// Measures the server, with the key in OPENAI_API_KEY where none is given, and makes what it measured one of the
// question's results. Throws InputError.
void measure_server(const ServerChoices& choices, study::BenchmarkQuestion& question);

}  // namespace dculab::cli
