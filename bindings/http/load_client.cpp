#include "bindings/http/load_client.hpp"

#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "fields/json_text.hpp"
#include "fields/printable_text.hpp"

namespace dculab::http {
namespace {

constexpr int kLongestSilence = 600;  // s, before a token
constexpr std::size_t kLongestRefusal = 500;

[[nodiscard]] Node number(std::int64_t value) {
  Node node;
  node.kind = NodeKind::scalar;
  node.type = ScalarType::integer;
  node.text = std::to_string(value);
  return node;
}
[[nodiscard]] Node flag(bool value) {
  Node node;
  node.kind = NodeKind::scalar;
  node.type = ScalarType::flag;
  node.text = value ? "true" : "false";
  return node;
}
[[nodiscard]] Node text(const std::string& value) {
  Node node;
  node.kind = NodeKind::scalar;
  node.type = ScalarType::text;
  node.text = value;
  return node;
}

// "http://host:8000/v1/" -> "http://host:8000"
[[nodiscard]] std::string root_of(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  if (url.ends_with("/v1")) url.resize(url.size() - 3);
  if (!url.starts_with("http://") && !url.starts_with("https://")) url.insert(0, "http://");
  return url;
}

[[nodiscard]] std::unique_ptr<httplib::Client> connect(const std::string& url) {
  auto client = std::make_unique<httplib::Client>(root_of(url));
  if (!client->is_valid()) throw InputError("--server " + url, "is no address of a server: http://HOST:PORT");
  client->set_keep_alive(true);
  client->set_tcp_nodelay(true);
  client->set_read_timeout(kLongestSilence);
  return client;
}

[[nodiscard]] std::string first_model(const std::string& url) {
  const httplib::Result answer = connect(url)->Get("/v1/models");
  if (!answer || answer->status != 200)
    throw InputError("--server " + url, !answer ? "cannot be reached (" + httplib::to_string(answer.error()) + ")"
                                                : "has no /v1/models: it is no OpenAI-compatible server");
  const Node document = parse_json(url + "/v1/models", 1, answer->body);
  const Node* data = document.find("data");
  const Node* id = data == nullptr || data->children.empty() ? nullptr : data->children.front().find("id");
  if (id == nullptr) throw InputError("--server " + url, "names no model; give --served-model-name");
  return id->text;
}

[[nodiscard]] std::string body_of(const ServerLoad& load, const std::string& model, int request) {
  std::mt19937_64 random(load.seed * 1'000'003 + static_cast<std::uint64_t>(request));
  Node prompt;
  prompt.kind = NodeKind::list;
  // Special tokens stand at either end of most vocabularies.
  const int first = load.vocab_size / 8, count = std::max(1, load.vocab_size / 2);
  for (int token = 0; token < load.prompt_tokens; ++token)
    prompt.children.push_back(number(first + static_cast<int>(random() % static_cast<std::uint64_t>(count))));
  Node usage, body;
  usage.kind = body.kind = NodeKind::map;
  set_member(usage, "include_usage", flag(true));
  set_member(body, "model", text(model));
  set_member(body, "prompt", std::move(prompt));
  set_member(body, "max_tokens", number(load.output_tokens));
  set_member(body, "temperature", number(0));
  set_member(body, "ignore_eos", flag(true));
  set_member(body, "stream", flag(true));
  set_member(body, "stream_options", std::move(usage));
  return json_text(body);
}

// One request and its stream.
class StreamedRequest {
 public:
  StreamedRequest(const ServerLoad& load, std::string body, std::chrono::steady_clock::time_point start)
      : load_(load), start_(start) {
    request_.method = "POST";
    request_.path = "/v1/completions";
    request_.headers = {{"Content-Type", "application/json"}, {"Accept", "text/event-stream"}};
    request_.body = std::move(body);
    request_.content_receiver = [this](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
      receive({data, size});
      return true;
    };
  }

  [[nodiscard]] config::VllmRun::Request send(httplib::Client& client) {
    seen_.sent = now();
    seen_.prompt_tokens = load_.prompt_tokens;
    const httplib::Result answer = client.send(request_);
    if (!answer) refuse("breaks off a request (" + httplib::to_string(answer.error()) + ")");
    if (answer->status != 200) refuse("refuses a request: " + std::to_string(answer->status) + " " + start_of_body_);
    if (!failure_.empty()) refuse("ends a request: " + failure_);
    if (seen_.token_times.empty()) refuse("sends no tokens for a request: " + start_of_body_);
    if (tokens_) seen_.token_times.resize(std::max(seen_.token_times.size(), *tokens_), seen_.token_times.back());
    return std::move(seen_);
  }

 private:
  [[nodiscard]] Seconds now() const {
    return Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count());
  }
  // On one line.
  [[noreturn]] void refuse(std::string what) const {
    std::ranges::replace(what, '\n', ' ');
    what.resize(what.find_last_not_of(' ') + 1);
    throw InputError("--server " + load_.url, what);
  }

  void receive(std::string_view piece) {
    if (start_of_body_.size() < kLongestRefusal)
      start_of_body_ += printable(std::string(piece.substr(0, kLongestRefusal - start_of_body_.size())));
    events_.add(piece, [this](std::string_view data) { see(data); });
  }

  void see(std::string_view data) {
    if (data == "[DONE]") return;
    try {
      const Node event = parse_json("an event of the stream", 1, data);
      const Node *choices = event.find("choices"), *usage = event.find("usage"), *error = event.find("error");
      if (error != nullptr && error->kind != NodeKind::null) failure_ = std::string(data.substr(0, kLongestRefusal));
      if (choices != nullptr && !choices->children.empty()) return seen_.token_times.push_back(now());
      const Node* tokens = usage == nullptr ? nullptr : usage->find("completion_tokens");
      if (const auto count = tokens == nullptr ? std::nullopt : integer_of(*tokens); count && *count > 0)
        tokens_ = static_cast<std::size_t>(std::min<std::int64_t>(*count, load_.output_tokens));
    } catch (const InputError& bad) {
      failure_ = bad.what();
    }
  }

  const ServerLoad& load_;
  std::chrono::steady_clock::time_point start_;
  httplib::Request request_;
  EventReader events_;
  config::VllmRun::Request seen_;
  std::optional<std::size_t> tokens_;  // as the server counts them
  std::string failure_, start_of_body_;
};

}  // namespace

void EventReader::add(std::string_view piece, const std::function<void(std::string_view data)>& see) {
  rest_ += piece;
  std::erase(rest_, '\r');
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = rest_.find("\n\n", begin)) != std::string::npos; begin = end + 2) {
    std::string_view event = std::string_view(rest_).substr(begin, end - begin);
    while (event.starts_with('\n')) event.remove_prefix(1);
    if (!event.starts_with("data:")) continue;  // a comment keeps the connection open
    event.remove_prefix(5);
    if (event.starts_with(' ')) event.remove_prefix(1);
    see(event);
  }
  rest_.erase(0, begin);
}

config::VllmRun load_server(const ServerLoad& load, const LoadProgress& progress) {
  const std::string model = load.served_model.empty() ? first_model(load.url) : load.served_model;
  config::VllmRun run{.model = model};
  if (load.max_concurrency > 0) run.max_concurrency = load.max_concurrency;
  run.requests.resize(static_cast<std::size_t>(load.requests));
  const int clients = load.max_concurrency > 0 ? std::min(load.max_concurrency, load.requests) : load.requests;
  std::vector<std::string> bodies;
  for (int request = 0; request < load.requests; ++request) bodies.push_back(body_of(load, model, request));
  const auto start = std::chrono::steady_clock::now();
  std::atomic<int> next = 0;
  std::mutex mutex;
  int ended = 0;
  std::exception_ptr thrown;
  const auto work = [&] {
    try {
      const std::unique_ptr<httplib::Client> client = connect(load.url);
      for (int request = next++; request < load.requests; request = next++) {
        const auto place = static_cast<std::size_t>(request);
        run.requests[place] = StreamedRequest(load, std::move(bodies[place]), start).send(*client);
        const std::lock_guard lock(mutex);
        if (progress) progress(static_cast<double>(++ended) / load.requests);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
      next = load.requests;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int client = 0; client < clients; ++client) threads.emplace_back(work);
  }
  if (thrown) std::rethrow_exception(thrown);
  return run;
}

}  // namespace dculab::http
