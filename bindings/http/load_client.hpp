// A client that loads a running server as `vllm bench serve --dataset-name random --ignore-eos` does, and notes when
// each token came.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "config/benchmarks/vllm_writer.hpp"

namespace dculab::http {

struct ServerLoad {
  std::string url;             // "http://localhost:8000", with /v1 or without, with a path before it or without
  std::string api_key{};       // sent with each request, and nowhere else; empty: none
  std::string served_model{};  // its name there; empty: the first that the server names
  int requests = 100;
  int prompt_tokens = 256, output_tokens = 128;  // of each request
  int max_concurrency = 0;                       // requests at a time; 0: all at once
  int vocab_size = 0;                            // of the model: prompts are random tokens
  std::uint64_t seed = 1;
};

// Called with the share of the requests that have ended, on any thread, one at a time.
using LoadProgress = std::function<void(double share)>;

// All requests with the times of their tokens: pieces of a stream as they arrive; where the server counts more tokens
// than it sent pieces, the last piece brought the rest. Requests that the server refuses or breaks off are counted.
// Throws InputError for a server that cannot be reached, names no model, or fails more than a tenth of the requests.
[[nodiscard]] config::VllmRun load_server(const ServerLoad& load, const LoadProgress& progress = {});

// "http://host:8000/gateway/v1/": "http://host:8000" and "/gateway/v1".
struct ServerAddress {
  std::string root, path;
};
[[nodiscard]] ServerAddress server_address(std::string url);

// The events of a stream that is cut anywhere: what stands behind "data:", complete ones only.
class EventReader {
 public:
  // Calls `see` with each event that `piece` completes. False where one is longer than 1 MiB.
  [[nodiscard]] bool add(std::string_view piece, const std::function<void(std::string_view data)>& see);

 private:
  std::string rest_;
};

}  // namespace dculab::http
