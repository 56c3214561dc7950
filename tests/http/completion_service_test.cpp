// Requests through the real engine, without sockets.
#include "bindings/http/completion_service.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "bindings/http/api_error.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/generate/generator.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/model_folders.hpp"

using namespace dculab;
using http::Answer;
using http::ApiError;
using http::CompletionRequest;
using http::Endpoint;

namespace {

using Json = nlohmann::json;
constexpr auto kSoon = std::chrono::milliseconds(20);

// A service of the shipped model with few blocks.
struct TestService {
  explicit TestService(int most_requests = 64, const std::string& chat = "") {
    const std::filesystem::path folder = kShippedModel;
    model = std::make_unique<http::ServedModel>(
        http::ServedModel{.name = "tiny",
                          .tokenizer = engine::Tokenizer::load(folder / "tokenizer.json"),
                          .defaults = read_generation_config(folder),
                          .max_model_len = 1024,
                          .vocab_size = 2048,
                          .no_chat = "there is no template"});
    if (!chat.empty()) model->chat.emplace(chat, "T");
    asked.num_threads = 1;
    asked.engine.max_num_seqs = 8;
    asked.kv_cache_memory = 8 * kMiB;
    engine::ModelWeights weights = engine::load_weights(folder);
    const EngineOptions options = engine::served_options(asked, weights.shape);
    metrics = std::make_unique<http::ServerMetrics>("tiny", 1024, false);
    core = std::make_unique<engine::AsyncEngine>([&] { return engine::open_model(weights, options, asked); }, options,
                                                 most_requests,
                                                 ServingCallbacks{.on_tokens = [this](const Sequence& each, int count) {
                                                   if (fails) throw std::runtime_error("no memory is left");
                                                   metrics->saw_tokens(each, count);
                                                 }});
    service = std::make_unique<http::CompletionService>(*model, *core, *metrics);
  }

  // Once everything has ended.
  void require_empty() const {
    for (int look = 0; look < 1000; ++look) {
      const engine::AsyncEngineState state = core->state();
      if (state.running + state.waiting == 0 && state.kv_cache_usage == 0) return;
      std::this_thread::sleep_for(kSoon);
    }
    FAIL("requests are left");
  }

  bool fails = false;  // where a step has tokens; set before anything is asked
  engine::GeneratorOptions asked;
  std::unique_ptr<http::ServedModel> model;
  std::unique_ptr<http::ServerMetrics> metrics;
  std::unique_ptr<engine::AsyncEngine> core;
  std::unique_ptr<http::CompletionService> service;
};

CompletionRequest greedy(const std::string& prompt, int max_tokens) {
  CompletionRequest request;
  request.prompt = prompt;
  request.max_tokens = max_tokens;
  request.temperature = 0;
  return request;
}

// Everything, and why it ended.
std::pair<std::string, std::string> whole(Answer& answer) {
  std::string text;
  for (;;) {
    const http::AnswerPiece piece = answer.next(kSoon);
    text += piece.text;
    if (piece.finish_reason) return {text, *piece.finish_reason};
  }
}

// What it is refused with: status and parameter.
std::pair<int, std::string> refusal(TestService& server, const CompletionRequest& request) {
  try {
    static_cast<void>(server.service->begin(request));
    return {};
  } catch (const ApiError& error) {
    return {error.status(), error.param()};
  }
}

}  // namespace

TEST_CASE("answers are those of the generator, whoever else is served", "[http][engine]") {
  TestService server;
  std::vector<std::string> prompts;
  for (int i = 0; i < 24; ++i) prompts.push_back("Once there were " + std::to_string(i) + " cats who");
  std::vector<std::string> served(prompts.size());
  {
    std::vector<std::jthread> clients;
    for (std::size_t i = 0; i < prompts.size(); ++i)
      clients.emplace_back(
          [&, i] { served[i] = whole(*server.service->begin(greedy(prompts[i], 5 + static_cast<int>(i)))).first; });
  }
  engine::Generator generator(kShippedModel, server.asked);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::vector<engine::TextRequest> request{{.prompt = prompts[i], .max_tokens = 5 + static_cast<int>(i)}};
    REQUIRE(served[i] == generator.generate(request).completions.front().text);
  }
  server.require_empty();
}

TEST_CASE("an answer that nobody waits for is aborted, and its blocks come back", "[http][engine]") {
  TestService server;
  std::vector<std::unique_ptr<Answer>> answers;
  for (int i = 0; i < 20; ++i) {
    CompletionRequest request = greedy("A long story about", 900);
    request.ignore_eos = true;
    answers.push_back(server.service->begin(request));
  }
  while (answers.front()->usage().completion_tokens < 5) static_cast<void>(answers.front()->next(kSoon));
  REQUIRE(server.core->state().running > 0);
  answers.clear();
  server.require_empty();
  REQUIRE(server.service->metrics_text().find("finished_reason=\"abort\"} 20.0") != std::string::npos);
}

TEST_CASE("a stop string ends a request before the engine does", "[http][engine]") {
  TestService server;
  const auto [text, reason] = whole(*server.service->begin(greedy("One day", 60)));
  const std::string stop = text.substr(text.size() / 2, 3);
  CompletionRequest request = greedy("One day", 60);
  request.stop = {stop};
  const std::unique_ptr<Answer> answer = server.service->begin(request);
  const auto [cut, stopped] = whole(*answer);
  REQUIRE(stopped == "stop");
  REQUIRE(cut == text.substr(0, text.find(stop)));
  REQUIRE(answer->usage().completion_tokens < 60);
  server.require_empty();
}

TEST_CASE("what cannot be served is refused in OpenAI's words", "[http][engine]") {
  TestService server;
  CompletionRequest request = greedy("x", 5);
  request.model = "gpt-4";
  REQUIRE(refusal(server, request) == std::pair(404, std::string("model")));
  REQUIRE(refusal(server, greedy("", 5)) == std::pair(400, std::string("prompt")));
  REQUIRE(refusal(server, greedy("x", 1024)) == std::pair(400, std::string("max_tokens")));
  request = greedy("", 5);
  request.prompt_token_ids = {1, 2048};
  REQUIRE(refusal(server, request) == std::pair(400, std::string("prompt")));
  request.prompt_token_ids = std::vector<TokenId>(1024, 1);
  REQUIRE(refusal(server, request) == std::pair(400, std::string("prompt")));
  request = {.endpoint = Endpoint::chat, .messages = {{.role = "user", .content = "hi"}}};
  REQUIRE(refusal(server, request) == std::pair(400, std::string("messages")));
}

TEST_CASE("more requests than the server holds are refused", "[http][engine]") {
  TestService server(3);
  CompletionRequest request = greedy("A story", 900);
  request.ignore_eos = true;
  std::vector<std::unique_ptr<Answer>> answers;
  for (int i = 0; i < 3; ++i) answers.push_back(server.service->begin(request));
  REQUIRE(refusal(server, request).first == 503);
  answers.clear();
  server.require_empty();
  REQUIRE_NOTHROW(server.service->begin(request));
}

TEST_CASE("a chat goes through the template", "[http][engine]") {
  TestService server(64,
                     "{% for m in messages %}{{ m.content }}{% if m.role == 'bad' %}{{ raise_exception('no') }}"
                     "{% endif %}{% endfor %}");
  CompletionRequest request = greedy("", 8);
  request.endpoint = Endpoint::chat;
  request.messages = {{.role = "user", .content = "Once upon a time"}};
  const std::unique_ptr<Answer> chat = server.service->begin(request),
                                text = server.service->begin(greedy("Once upon a time", 8));
  REQUIRE(whole(*chat).first == whole(*text).first);
  request.messages[0].role = "bad";
  REQUIRE(refusal(server, request) == std::pair(400, std::string("messages")));
}

TEST_CASE("the JSON has what OpenAI's clients read", "[http][engine]") {
  TestService server(64, "{{ messages[0].content }}");
  const std::unique_ptr<Answer> answer = server.service->begin(greedy("Once", 4));
  const auto [text, reason] = whole(*answer);
  const Json completion = Json::parse(answer->whole_json(text, reason));
  REQUIRE(completion["object"] == "text_completion");
  REQUIRE(completion["model"] == "tiny");
  REQUIRE(completion["choices"][0]["text"] == text);
  REQUIRE(completion["choices"][0]["finish_reason"] == "length");
  REQUIRE(completion["choices"][0]["logprobs"].is_null());
  REQUIRE(completion["usage"]["completion_tokens"] == 4);
  REQUIRE(completion["usage"]["total_tokens"] == completion["usage"]["prompt_tokens"].get<int>() + 4);
  CompletionRequest request = greedy("", 4);
  request.endpoint = Endpoint::chat;
  request.messages = {{.role = "user", .content = "Once"}};
  const std::unique_ptr<Answer> chat = server.service->begin(request);
  const Json first = Json::parse(chat->piece_json({.text = "a", .tokens = 1}));
  REQUIRE(first["object"] == "chat.completion.chunk");
  REQUIRE(first["choices"][0]["delta"] == Json{{"role", "assistant"}, {"content", "a"}});
  REQUIRE(first["choices"][0]["finish_reason"].is_null());
  const Json last = Json::parse(chat->piece_json({.text = "b", .tokens = 1, .finish_reason = "stop"}));
  REQUIRE(last["choices"][0]["delta"] == Json{{"content", "b"}});
  REQUIRE(last["choices"][0]["finish_reason"] == "stop");
  REQUIRE(Json::parse(chat->usage_json())["choices"].empty());
  const Json error = Json::parse(http::bad_parameter("n", "must be 1").json())["error"];
  REQUIRE(error ==
          Json{{"message", "n: must be 1"}, {"type", "invalid_request_error"}, {"param", "n"}, {"code", nullptr}});
}

TEST_CASE("an engine that is stopped ends all answers with words", "[http][engine]") {
  TestService server;
  CompletionRequest request = greedy("A story", 900);
  request.ignore_eos = true;
  const std::unique_ptr<Answer> answer = server.service->begin(request);
  server.core->stop("enough");
  REQUIRE_THROWS_WITH(whole(*answer), ContainsSubstring("enough"));
  REQUIRE(refusal(server, request).first == 503);
}

TEST_CASE("an engine that fails ends all answers with status 500 and its reason", "[http][engine]") {
  TestService server;
  server.fails = true;
  const CompletionRequest request = greedy("A story", 900);
  const std::unique_ptr<Answer> answer = server.service->begin(request);
  try {
    static_cast<void>(whole(*answer));
    FAIL("an answer without an engine");
  } catch (const ApiError& error) {
    REQUIRE(error.status() == 500);
    REQUIRE(std::string(error.what()) == "the engine has failed: no memory is left");
  }
  REQUIRE(refusal(server, request).first == 503);
}

TEST_CASE("a model that cannot be opened is refused by the constructor", "[http][engine]") {
  const auto make = []() -> engine::OpenModel { throw InputError("no model"); };
  REQUIRE_THROWS_WITH(engine::AsyncEngine(make, {}, 1), "no model");
}
