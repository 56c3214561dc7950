#include "bindings/http/load_client.hpp"

#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
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
constexpr std::size_t kLongestRefusal = 500, kLongestEvent = std::size_t{1} << 20;

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

[[nodiscard]] std::unique_ptr<httplib::Client> connect(const ServerLoad& load) {
  auto client = std::make_unique<httplib::Client>(server_address(load.url).root);
  if (!client->is_valid()) throw InputError("--server " + load.url, "is no address of a server: http://HOST:PORT");
  client->set_keep_alive(true);
  client->set_tcp_nodelay(true);
  client->set_read_timeout(kLongestSilence);
  if (!load.api_key.empty()) client->set_default_headers({{"Authorization", "Bearer " + load.api_key}});
  return client;
}

[[nodiscard]] std::string first_model(const ServerLoad& load) {
  const std::string where = "--server " + load.url, path = server_address(load.url).path + "/models";
  const httplib::Result answer = connect(load)->Get(path);
  if (!answer) throw InputError(where, "cannot be reached (" + httplib::to_string(answer.error()) + ")");
  if (answer->status == 401 || answer->status == 403)
    throw InputError(where, "wants another key; give it in OPENAI_API_KEY or by --api-key");
  if (answer->status != 200) throw InputError(where, "has no " + path + ": it is no OpenAI-compatible server");
  const Node document = parse_json(load.url + path, 1, answer->body);
  const Node* data = document.find("data");
  const Node* id = data == nullptr || data->children.empty() ? nullptr : data->children.front().find("id");
  if (id == nullptr) throw InputError(where, "names no model; give --served-model-name");
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

// Why a request has no answer. The others go on.
struct Failure {
  std::string what;
};

// One request and its stream.
class StreamedRequest {
 public:
  StreamedRequest(const ServerLoad& load, std::string body, std::chrono::steady_clock::time_point start)
      : load_(load), start_(start) {
    request_.method = "POST";
    request_.path = server_address(load.url).path + "/completions";
    request_.headers = {{"Content-Type", "application/json"}, {"Accept", "text/event-stream"}};
    request_.body = std::move(body);
    request_.content_receiver = [this](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
      return receive({data, size});
    };
  }

  [[nodiscard]] config::VllmRun::Request send(httplib::Client& client) {
    seen_.sent = now();
    seen_.prompt_tokens = load_.prompt_tokens;
    const httplib::Result answer = client.send(request_);
    if (!failure_.empty()) fail("ends a request: " + failure_);
    if (!answer) fail("breaks off a request (" + httplib::to_string(answer.error()) + ")");
    if (answer->status != 200) fail("refuses a request: " + std::to_string(answer->status) + " " + start_of_body_);
    if (seen_.token_times.empty()) fail("sends no tokens for a request: " + start_of_body_);
    if (tokens_) seen_.token_times.resize(std::max(seen_.token_times.size(), *tokens_), seen_.token_times.back());
    return std::move(seen_);
  }

 private:
  [[nodiscard]] Seconds now() const {
    return Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count());
  }
  // On one line, without the key, should the server have repeated it.
  [[noreturn]] void fail(std::string what) const {
    std::ranges::replace(what, '\n', ' ');
    what.resize(what.find_last_not_of(' ') + 1);
    const std::string& key = load_.api_key;
    for (std::size_t at = 0; !key.empty() && (at = what.find(key, at)) != std::string::npos;)
      what.replace(at, key.size(), "***");
    throw Failure{what};
  }

  // False where nothing more is to come.
  [[nodiscard]] bool receive(std::string_view piece) {
    if (start_of_body_.size() < kLongestRefusal)
      start_of_body_ += printable(std::string(piece.substr(0, kLongestRefusal - start_of_body_.size())));
    if (events_.add(piece, [this](std::string_view data) { see(data); })) return true;
    failure_ = "an event of the stream is longer than 1 MiB";
    return false;
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

ServerAddress server_address(std::string url) {
  if (!url.starts_with("http://") && !url.starts_with("https://")) url.insert(0, "http://");
  while (url.ends_with('/')) url.pop_back();
  const std::size_t path = url.find('/', url.find("://") + 3);
  ServerAddress address{.root = url.substr(0, path), .path = path == std::string::npos ? "" : url.substr(path)};
  if (!address.path.ends_with("/v1")) address.path += "/v1";
  return address;
}

bool EventReader::add(std::string_view piece, const std::function<void(std::string_view data)>& see) {
  const std::size_t seen = rest_.empty() ? 0 : rest_.size() - 1;  // an end may begin with the last byte
  std::ranges::copy_if(piece, std::back_inserter(rest_), [](char each) { return each != '\r'; });
  std::size_t begin = 0;
  for (std::size_t end = seen; (end = rest_.find("\n\n", end)) != std::string::npos; begin = end += 2) {
    std::string_view event = std::string_view(rest_).substr(begin, end - begin);
    while (event.starts_with('\n')) event.remove_prefix(1);
    if (!event.starts_with("data:")) continue;  // a comment keeps the connection open
    event.remove_prefix(5);
    if (event.starts_with(' ')) event.remove_prefix(1);
    see(event);
  }
  rest_.erase(0, begin);
  return rest_.size() <= kLongestEvent;
}

namespace {

// The requests of a load, which several threads send.
class Load {
 public:
  Load(const ServerLoad& load, const std::string& model, const LoadProgress& progress)
      : load_(load), progress_(progress), answered_(static_cast<std::size_t>(load.requests)) {
    for (int request = 0; request < load.requests; ++request) bodies_.push_back(body_of(load, model, request));
    start_ = std::chrono::steady_clock::now();
  }

  // On each thread.
  void work() {
    try {
      const std::unique_ptr<httplib::Client> client = connect(load_);
      for (int request = next_++; request < load_.requests; request = next_++)
        send(static_cast<std::size_t>(request), *client);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!thrown_) thrown_ = std::current_exception();
      next_ = load_.requests;
    }
  }

  // Once all threads have ended.
  void give(config::VllmRun& run) {
    if (thrown_) std::rethrow_exception(thrown_);
    if (is_broken())
      throw InputError("--server " + load_.url,
                       first_failure_ + (failed_ > 1 ? " (and so for " + std::to_string(failed_) + " requests)" : ""));
    run.failed = failed_;
    for (auto& answered : answered_)
      if (answered) run.requests.push_back(std::move(*answered));
  }

 private:
  void send(std::size_t request, httplib::Client& client) {
    std::string failure;
    try {
      answered_[request] = StreamedRequest(load_, std::move(bodies_[request]), start_).send(client);
    } catch (const Failure& failed) {
      failure = failed.what;
    }
    const std::lock_guard lock(mutex_);
    if (!failure.empty() && failed_++ == 0) first_failure_ = failure;
    if (is_broken()) next_ = load_.requests;
    if (progress_) progress_(static_cast<double>(++ended_) / load_.requests);
  }

  // More than a tenth has failed: what is left says nothing of the load that was asked for.
  [[nodiscard]] bool is_broken() const { return failed_ * 10 > load_.requests; }

  const ServerLoad& load_;
  const LoadProgress& progress_;
  std::vector<std::string> bodies_;
  std::chrono::steady_clock::time_point start_;
  std::vector<std::optional<config::VllmRun::Request>> answered_;
  std::atomic<int> next_ = 0;
  std::mutex mutex_;
  int ended_ = 0, failed_ = 0;
  std::string first_failure_;
  std::exception_ptr thrown_;
};

}  // namespace

config::VllmRun load_server(const ServerLoad& load, const LoadProgress& progress) {
  const auto is_sent_as_it_is = [](unsigned char each) { return each > ' ' && each < 127; };
  if (!std::ranges::all_of(load.api_key, is_sent_as_it_is))
    throw InputError("--api-key, OPENAI_API_KEY", "a key has letters, digits and signs of ASCII only");
  const std::string model = load.served_model.empty() ? first_model(load) : load.served_model;
  config::VllmRun run{.model = model};
  if (load.max_concurrency > 0) run.max_concurrency = load.max_concurrency;
  const int clients = load.max_concurrency > 0 ? std::min(load.max_concurrency, load.requests) : load.requests;
  Load requests(load, model, progress);
  {
    std::vector<std::jthread> threads;
    for (int client = 0; client < clients; ++client) threads.emplace_back([&requests] { requests.work(); });
  }
  requests.give(run);
  return run;
}

}  // namespace dculab::http
