#include "bindings/http/http_server.hpp"

#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <utility>

#include "bindings/http/api_error.hpp"
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
constexpr int kReadSeconds = 10, kWriteSeconds = 10, kKeepAliveSeconds = 5;
constexpr const char* kJson = "application/json";
// To the letter: other texts are compressed where the client allows it, which keeps events back.
constexpr const char* kEvents = "text/event-stream";

void refuse(httplib::Response& response, const ApiError& error) {
  response.status = error.status();
  if (error.status() == 503) response.set_header("Retry-After", "1");
  response.set_content(error.json(), kJson);
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
[[nodiscard]] bool gather_piece(Answer& answer, std::string& text, httplib::DataSink& sink) {
  try {
    const AnswerPiece piece = answer.next(kLook);
    text += piece.text;
    if (!piece.finish_reason) return sink.is_writable();
    if (!write(sink, answer.whole_json(text, *piece.finish_reason))) return false;
  } catch (const ApiError& error) {
    if (!write(sink, error.json())) return false;
  }
  sink.done();
  return true;
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(CompletionService& service, const StepHistory& steps, const HttpOptions& options)
      : service_(service), steps_(steps), options_(options) {
    server_.new_task_queue = [most = options.most_connections] { return new ConnectionThreads(most); };
    server_.set_payload_max_length(options.most_body_bytes);
    server_.set_read_timeout(kReadSeconds);
    server_.set_write_timeout(kWriteSeconds);
    server_.set_keep_alive_timeout(kKeepAliveSeconds);
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
  // Connections may wait by the hundred; the library would have only five of them wait.
  class Listener final : public httplib::Server {
   public:
    void lengthen_backlog() { ::listen(svr_sock_, kBacklog); }
  };

  void add_completions() {
    const auto serve = [this](Endpoint endpoint) {
      return [this, endpoint](const httplib::Request& request, httplib::Response& response) {
        try {
          complete(parse_completion_request(endpoint, request.body), response);
        } catch (const ApiError& error) {
          refuse(response, error);
        }
      };
    };
    server_.Post("/v1/completions", serve(Endpoint::completions));
    server_.Post("/v1/chat/completions", serve(Endpoint::chat));
  }

  void complete(const CompletionRequest& asked, httplib::Response& response) {
    const std::shared_ptr<Answer> answer = service_.begin(asked);
    if (asked.stream) {
      response.set_header("Cache-Control", "no-cache");
      response.set_chunked_content_provider(
          kEvents, [answer, usage = asked.include_usage](std::size_t, httplib::DataSink& sink) {
            return stream_piece(*answer, usage, sink);
          });
      return;
    }
    response.set_chunked_content_provider(
        kJson, [answer, text = std::make_shared<std::string>()](std::size_t, httplib::DataSink& sink) {
          return gather_piece(*answer, *text, sink);
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
      const std::string since = request.get_param_value("since");
      return text_of(steps_.view(std::atoll(since.c_str())));
    });
    get("/", "text/html; charset=utf-8", [](const httplib::Request&) { return std::string(server_page()); });
  }

  // What the library refuses itself, and what is thrown.
  void add_errors() {
    server_.set_error_handler([](const httplib::Request& request, httplib::Response& response) {
      if (!response.body.empty()) return;
      const std::string what = in_quotes(repaired(request.method + " " + request.path));
      const int status = response.status;
      const std::string reason = status == 404   ? what + " is not served here"
                                 : status == 413 ? "the body is too large"
                                                 : "the request cannot be served";
      refuse(response, ApiError(status, reason));
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
