// `dculab serve`: a model folder, its engine and the HTTP server put together.
#pragma once

#include <functional>
#include <string>

#include "bindings/http/http_server.hpp"
#include "engine/generate/open_model.hpp"

namespace dculab::http {

struct ServeQuestion {
  std::string model;        // a Hugging Face folder, or a name under scenarios/models
  std::string served_name;  // "": the folder's
  std::string machine;      // whose prices the page shows: a file, or a name; "": none
  engine::GeneratorOptions generator{};
  int most_waiting = 1024;  // requests beside the max_num_seqs that run
  HttpOptions http{};
};

struct ServerReady {
  std::string url, model;
  std::string no_chat;     // why there is no chat; empty: there is
  std::string fewer_wait;  // why fewer requests wait than were asked for; empty: they do not
};

// Serves until the program is told to end. `on_ready` is called once connections are taken. Throws InputError for a
// folder that cannot be served, a machine that cannot be priced, an address that cannot be listened on, and more
// sequences than the process may open descriptors; and what the engine throws.
void serve(const ServeQuestion& question, const std::function<void(const ServerReady&)>& on_ready);

}  // namespace dculab::http
