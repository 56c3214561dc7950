// A running server measured so that what is predicted for it can be compared: `validate --server URL`.
#pragma once

#include <string>

#include "bindings/http/load_client.hpp"
#include "study/benchmarks/benchmark_cases.hpp"

namespace dculab::http {

struct ServerQuestion {
  std::string url;
  std::string served_model{};  // its name there; empty: the first that the server names
  std::string api_key{};       // empty: none
  int requests = 100;
  int max_concurrency = 0;  // 0: all at once
};

// Loads the server with requests of `predicted`'s prompt_tokens and output_tokens, 256 and 128 where they are not
// given, of the vocabulary of its model. Throws InputError as load_server(), where `predicted` does not name the model,
// the machine and the stack, and for more requests at a time than can be sent.
[[nodiscard]] config::VllmRun measure_server(const ServerQuestion& question, const study::BenchmarkQuestion& predicted,
                                             const LoadProgress& progress = {});

}  // namespace dculab::http
