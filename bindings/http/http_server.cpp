#include "bindings/http/http_server.hpp"

#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <optional>
#include <utility>

#include "bindings/http/api_error.hpp"
#include "bindings/http/connection.hpp"
#include "bindings/http/connection_threads.hpp"
#include "bindings/http/server_page.hpp"
#include "bindings/http/step_fields.hpp"
#include "core/error.hpp"
#include "fields/printable_text.hpp"
#include "fields/utf8.hpp"

namespace dculab::http {
namespace {

constexpr auto kLook = std::chrono::milliseconds(100);  // how often a quiet client is looked at: whether it is there
constexpr auto kShort = std::chrono::milliseconds(1), kFarewell = std::chrono::milliseconds(2000);
constexpr int kBacklog = 1024;  // connections that nobody has accepted yet
constexpr std::chrono::seconds kKeepAlive{5};
constexpr std::size_t kRefusing = 16;  // threads, for connections above the limit
constexpr const char* kJson = "application/json";
// To the letter: other texts are compressed where the client allows it, which keeps events back.
constexpr const char* kEvents = "text/event-stream";

void refuse(httplib::Response& response, const ApiError& error) {
  response.status = error.status();
  if (error.status() == 503) response.set_header("Retry-After", "1");
  response.set_content(error.json(), kJson);
}

// Also ends the connection: a part of the request is unread, or somebody else needs it.
void refuse_and_close(httplib::Response& response, const ApiError& error) {
  refuse(response, error);
  response.set_header("Connection", "close");
  Connection::of_this_thread().close_afterwards();
}

[[nodiscard]] ApiError not_served(const httplib::Request& request) {
  return {404, in_quotes(repaired(request.method + " " + request.path)) + " is not served here"};
}

template <class Number>
[[nodiscard]] std::optional<Number> number_of(const std::string& text) {
  Number number{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// A body of `most` bytes at the most, as it is unpacked. The library would take any that is packed or in chunks.
[[nodiscard]] std::string read_body(const httplib::Request& request, const httplib::Response& response,
                                    const httplib::ContentReader& read, std::size_t most) {
  const ApiError too_large(413, "the body is larger than " + std::to_string(most) + " bytes");
  if (request.is_multipart_form_data()) throw ApiError(415, "the body must be JSON, and is a form of several parts");
  if (!request.has_header("Transfer-Encoding")) {
    if (!request.has_header("Content-Length")) return {};
    const auto size = number_of<std::uint64_t>(request.get_header_value("Content-Length"));
    if (!size) throw ApiError(400, "Content-Length is no number of bytes");
    if (*size > most) throw too_large;
  }
  std::string body;
  bool fits = true;
  const bool is_whole = read([&](const char* data, std::size_t size) {
    fits = size <= most - body.size();
    if (fits) body.append(data, size);
    return fits;
  });
  if (!fits) throw too_large;
  if (!is_whole)
    throw ApiError(response.status == 415 ? 415 : 400, response.status == 415
                                                           ? "the body's Content-Encoding is not served"
                                                           : "the body ends early, comes too slowly, or is broken");
  return body;
}

[[nodiscard]] bool write(httplib::DataSink& sink, const std::string& text) {
  return sink.write(text.data(), text.size());
}

[[nodiscard]] std::string event(const std::string& data) { return "data: " + data + "\n\n"; }

// Pieces as events, each as it comes. False ends the connection.
[[nodiscard]] bool stream_piece(Answer& answer, bool includes_usage, httplib::DataSink& sink) {
  try {
    const AnswerPiece piece = answer.next(kLook);
    if (piece.tokens == 0 && !piece.finish_reason) return sink.is_writable();
    if (!write(sink, event(answer.piece_json(piece)))) return false;
    if (!piece.finish_reason) return true;
    if (includes_usage && !write(sink, event(answer.usage_json()))) return false;
    if (!write(sink, event("[DONE]"))) return false;
  } catch (const ApiError& error) {
    if (!write(sink, event(error.json()))) return false;
  }
  sink.done();
  return true;
}

// The answer as a whole, once it is there.
void answer_whole(Answer& answer, httplib::Response& response) {
  Connection& connection = Connection::of_this_thread();
  std::string text;
  for (;;) {
    const AnswerPiece piece = answer.next(kLook);
    text += piece.text;
    if (piece.finish_reason) return response.set_content(answer.whole_json(text, *piece.finish_reason), kJson);
    if (connection.is_gone()) return refuse_and_close(response, ApiError(400, "the client has gone"));
  }
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(CompletionService& service, const StepHistory& steps, const HttpOptions& options)
      : service_(service), steps_(steps), options_(options), server_(options.most_connections) {
    server_.new_task_queue = [most = options.most_connections + kRefusing] { return new ConnectionThreads(most); };
    server_.set_payload_max_length(options.most_body_bytes);
    server_.set_keep_alive_timeout(kKeepAlive.count());  // for what clients are told, as this
    server_.set_keep_alive_max_count(1'000'000);
    server_.set_tcp_nodelay(true);
    add_completions();
    add_pages();
    add_errors();
  }

  [[nodiscard]] int bind() {
    int port = options_.port;
    if (port == 0)
      port = server_.bind_to_any_port(options_.host);
    else if (!server_.bind_to_port(options_.host, port))
      port = -1;
    if (port < 0)
      throw InputError("--host " + options_.host + " --port " + std::to_string(options_.port),
                       "cannot be listened on; is another server there? --port 0 takes a free one");
    server_.lengthen_backlog();
    return port;
  }

  void listen() {
    if (!is_stopped_) server_.listen_after_bind();
    has_ended_ = true;
  }

  // What is told to stop as it begins to listen is told so again.
  void stop() {
    is_stopped_ = true;
    const auto latest = std::chrono::steady_clock::now() + kFarewell;
    while (!has_ended_ && std::chrono::steady_clock::now() < latest) {
      if (server_.is_running()) server_.stop();
      std::this_thread::sleep_for(kShort);
    }
  }

 private:
  class Listener final : public httplib::Server {
   public:
    explicit Listener(std::size_t most_connections) : most_connections_(most_connections) {}

    // Connections may wait by the hundred; the library would have only five of them wait.
    void lengthen_backlog() { ::listen(svr_sock_, kBacklog); }

   private:
    bool process_and_close_socket(socket_t socket) override {
      Connection connection(socket, {}, [this] { return svr_sock_ == INVALID_SOCKET; });
      const bool is_served = ++connections_ <= most_connections_;
      if (is_served)
        serve(connection);
      else
        refuse_connection(connection);
      --connections_;
      return true;
    }

    void serve(Connection& connection) {
      bool is_closed = false;
      while (!is_closed && connection.begin_request(kKeepAlive)) {
        const auto whole = [](httplib::Request& request) { request.ranges.clear(); };  // of an answer, no part is had
        if (!process_request(connection, false, is_closed, whole) || connection.closes()) return;
      }
    }

    static void refuse_connection(Connection& connection) {
      const std::string body = ApiError(503, "the server has as many connections as it takes; try again later").json();
      const std::string head =
          "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: "
          "application/json\r\n";
      const std::string all = head + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
      connection.write(all.data(), all.size());
      connection.close_afterwards();
    }

    std::size_t most_connections_;
    std::atomic<std::size_t> connections_ = 0;
  };

  void add_completions() {
    const auto serve = [this](Endpoint endpoint) {
      return [this, endpoint](const httplib::Request& request, httplib::Response& response,
                              const httplib::ContentReader& read) {
        bool is_read = false;
        try {
          const std::string body = read_body(request, response, read, options_.most_body_bytes);
          is_read = true;
          complete(parse_completion_request(endpoint, body), response);
        } catch (const ApiError& error) {
          is_read&& error.status() < 500 ? refuse(response, error) : refuse_and_close(response, error);
        }
      };
    };
    server_.Post("/v1/completions", serve(Endpoint::completions));
    server_.Post("/v1/chat/completions", serve(Endpoint::chat));
    // The library would read the body of any other request, whatever its size.
    server_.set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
      const bool is_post = request.method == "POST";
      const bool has_body = is_post || request.method == "PUT" || request.method == "PATCH" ||
                            request.method == "DELETE" || request.method == "PRI";
      if (!has_body || (is_post && (request.path == "/v1/completions" || request.path == "/v1/chat/completions")))
        return httplib::Server::HandlerResponse::Unhandled;
      refuse_and_close(response, not_served(request));
      return httplib::Server::HandlerResponse::Handled;
    });
  }

  void complete(const CompletionRequest& asked, httplib::Response& response) {
    const std::shared_ptr<Answer> answer = service_.begin(asked);
    if (!asked.stream) return answer_whole(*answer, response);
    response.set_header("Cache-Control", "no-cache");
    response.set_chunked_content_provider(kEvents,
                                          [answer, usage = asked.include_usage](std::size_t, httplib::DataSink& sink) {
                                            return stream_piece(*answer, usage, sink);
                                          });
  }

  void add_pages() {
    const auto get = [this](const char* path, const char* type,
                            std::function<std::string(const httplib::Request&)> make) {
      server_.Get(path, [type, make = std::move(make)](const httplib::Request& request, httplib::Response& response) {
        response.set_content(make(request), type);
      });
    };
    get("/health", "text/plain", [](const httplib::Request&) { return ""; });
    get("/ping", "text/plain", [](const httplib::Request&) { return ""; });
    get("/version", kJson, [this](const httplib::Request&) { return text_of(VersionDocument{options_.version}); });
    get("/v1/models", kJson, [this](const httplib::Request&) { return text_of(ModelList{{service_.card()}}); });
    get("/metrics", "text/plain; version=0.0.4; charset=utf-8",
        [this](const httplib::Request&) { return service_.metrics_text(); });
    get("/steps", kJson, [this](const httplib::Request& request) {
      return text_of(steps_.view(number_of<std::int64_t>(request.get_param_value("since")).value_or(0)));
    });
    get("/", "text/html; charset=utf-8", [](const httplib::Request&) { return std::string(server_page()); });
  }

  // What the library refuses itself, and what is thrown.
  void add_errors() {
    server_.set_error_handler([](const httplib::Request& request, httplib::Response& response) {
      if (!response.body.empty()) return;
      if (response.status == 404) return refuse(response, not_served(request));
      refuse(response, ApiError(response.status, "the request cannot be served"));
    });
    server_.set_exception_handler([](const httplib::Request&, httplib::Response& response, std::exception_ptr thrown) {
      try {
        std::rethrow_exception(thrown);
      } catch (const std::bad_alloc&) {
        refuse(response, ApiError(503, "the server has no memory for the request"));
      } catch (const std::exception& error) {
        refuse(response, ApiError(500, error.what()));
      }
    });
  }

  CompletionService& service_;
  const StepHistory& steps_;
  HttpOptions options_;
  Listener server_;
  std::atomic<bool> is_stopped_ = false, has_ended_ = false;
};

HttpServer::HttpServer(CompletionService& service, const StepHistory& steps, const HttpOptions& options)
    : impl_(std::make_unique<Impl>(service, steps, options)) {}
HttpServer::~HttpServer() = default;

int HttpServer::bind() { return impl_->bind(); }
void HttpServer::listen() { impl_->listen(); }
void HttpServer::stop() { impl_->stop(); }

}  // namespace dculab::http
