// The server's connections: HTTP in, HTTP out.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "bindings/http/completion_service.hpp"
#include "bindings/http/step_history.hpp"

namespace dculab::http {

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8000;  // 0: any that is free
  std::size_t most_body_bytes = std::size_t{16} << 20;
  std::size_t most_connections = 1344;  // that are served at a time; others are refused with status 503
  std::string version{};
};

class HttpServer {
 public:
  // All must outlive it.
  HttpServer(CompletionService& service, const StepHistory& steps, const HttpOptions& options);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Takes the port; connections wait from then on. Returns its number. Throws InputError where it cannot be had.
  [[nodiscard]] int bind();

  // Serves connections until stop() is called; returns when the last one has ended.
  void listen();

  // From any thread, at any time. Waits a little for the connections' ends.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dculab::http
