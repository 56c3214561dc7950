#include "bindings/http/completion_request.hpp"

#include "bindings/http/api_error.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;
using http::ApiError;
using http::CompletionRequest;
using http::Endpoint;

namespace {

CompletionRequest completion(const std::string& body) {
  return http::parse_completion_request(Endpoint::completions, body);
}
CompletionRequest chat(const std::string& body) { return http::parse_completion_request(Endpoint::chat, body); }

// The parameter that a refusal names; "-" where the request is taken.
std::string refused(const std::string& body, Endpoint endpoint = Endpoint::completions) {
  try {
    static_cast<void>(http::parse_completion_request(endpoint, body));
    return "-";
  } catch (const ApiError& error) {
    CHECK(error.status() == 400);
    return error.param();
  }
}
std::string refused_with(const std::string& members) { return refused(R"({"prompt": "x", )" + members + "}"); }

}  // namespace

TEST_CASE("what vllm bench serve sends is taken", "[http]") {
  const CompletionRequest request = completion(R"({"model": "m", "prompt": "a b", "repetition_penalty": 1.0,
      "max_tokens": 128, "logprobs": null, "stream": true, "stream_options": {"include_usage": true},
      "ignore_eos": true, "temperature": 0.0})");
  REQUIRE(request.model == "m");
  REQUIRE(request.prompt == "a b");
  REQUIRE(request.max_tokens == 128);
  REQUIRE(request.temperature == 0);
  REQUIRE(request.stream);
  REQUIRE(request.include_usage);
  REQUIRE(request.ignore_eos);
}

TEST_CASE("a prompt is a text or token ids, alone or in a list", "[http]") {
  REQUIRE(completion(R"({"prompt": "a"})").prompt == "a");
  REQUIRE(completion(R"({"prompt": ["a"]})").prompt == "a");
  REQUIRE(completion(R"({"prompt": [1, 2]})").prompt_token_ids == std::vector<TokenId>{1, 2});
  REQUIRE(completion(R"({"prompt": [[1, 2]]})").prompt_token_ids == std::vector<TokenId>{1, 2});
  for (const char* bad : {"{}", R"({"prompt": 3})", R"({"prompt": ["a", "b"]})", R"({"prompt": [1, "a"]})",
                          R"({"prompt": [-1]})", R"({"prompt": [1.5]})", R"({"prompt": null})", R"({"prompt": {}})",
                          R"({"prompt": [99999999999]})", R"({"prompt": [[1], [2]]})"})
    REQUIRE(refused(bad) == "prompt");
}

TEST_CASE("messages have roles and texts", "[http]") {
  const CompletionRequest request = chat(R"({"messages": [{"role": "system", "content": "s", "name": "n"},
      {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
      "max_completion_tokens": 5})");
  REQUIRE(request.messages.size() == 2);
  REQUIRE(request.messages[1].content == "a\nb");
  REQUIRE(request.max_tokens == 5);
  for (const char* bad :
       {"{}", R"({"messages": []})", R"({"messages": "x"})", R"({"messages": [3]})", R"({"messages": [{}]})",
        R"({"messages": [{"role": "user"}]})", R"({"messages": [{"role": 3, "content": "x"}]})",
        R"({"messages": [{"role": "user", "content": 5}]})",
        R"({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]})",
        R"({"messages": [{"role": "user", "content": null}]})",
        R"({"messages": [{"role": "user", "content": "x", "made_up": 1}]})",
        R"({"messages": [{"role": "tool", "content": "x", "tool_call_id": "a"}]})",
        R"({"messages": [{"role": "assistant", "content": null, "tool_calls": [{}]}]})"})
    REQUIRE(refused(bad, Endpoint::chat) == "messages");
}

TEST_CASE("what clients send back of an assistant is taken", "[http]") {
  const CompletionRequest request = chat(R"({"messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": null, "refusal": null, "tool_calls": [], "annotations": []},
      {"role": "assistant"}]})");
  REQUIRE(request.messages.size() == 3);
  REQUIRE(request.messages[1].content.empty());
  REQUIRE(request.messages[2].content.empty());
}

TEST_CASE("each parameter that is wrong or not served is named", "[http]") {
  const std::pair<const char*, const char*> cases[] = {{"n", "2"},
                                                       {"n", "\"1\""},
                                                       {"best_of", "3"},
                                                       {"logprobs", "1"},
                                                       {"logprobs", "true"},
                                                       {"echo", "true"},
                                                       {"suffix", "\"x\""},
                                                       {"presence_penalty", "0.5"},
                                                       {"min_tokens", "4"},
                                                       {"logit_bias", "{\"1\": 2}"},
                                                       {"tools", "[{}]"},
                                                       {"tool_choice", "\"required\""},
                                                       {"tool_choice", "{\"type\": \"function\"}"},
                                                       {"temperature", "-1"},
                                                       {"temperature", "\"hot\""},
                                                       {"top_p", "0"},
                                                       {"top_p", "1.5"},
                                                       {"top_k", "1.5"},
                                                       {"max_tokens", "0"},
                                                       {"max_tokens", "1e3"},
                                                       {"seed", "0.5"},
                                                       {"seed", "1e30"},
                                                       {"stop", "3"},
                                                       {"stop", "[\"\"]"},
                                                       {"stop", "[1]"},
                                                       {"stream", "1"},
                                                       {"ignore_eos", "\"yes\""},
                                                       {"stream_options", "{\"include_usage\": true}"},
                                                       {"repetition_penalty", "1.1"},
                                                       {"response_format", "{\"type\": \"json_object\"}"},
                                                       {"made_up", "1"},
                                                       {"stop_token_ids", "[\"a\"]"}};
  for (const auto& [param, value] : cases) {
    CAPTURE(param, value);
    REQUIRE(refused_with("\"" + std::string(param) + "\": " + value) == param);
  }
}

TEST_CASE("parameters that change nothing are taken", "[http]") {
  REQUIRE(refused_with(R"("n": 1, "best_of": 1, "logprobs": null, "echo": false, "suffix": null, "tools": [],
      "presence_penalty": 0, "frequency_penalty": 0.0, "repetition_penalty": 1, "logit_bias": {}, "min_p": 0.0,
      "min_tokens": 0, "user": "u", "response_format": {"type": "text"}, "made_up": null, "metadata": {"a": 1},
      "seed": -5, "top_k": -1, "top_p": 1, "temperature": 2, "stop": null, "stop_token_ids": [3], "max_tokens": null)") ==
          "-");
  REQUIRE(completion(R"({"prompt": "x", "seed": -5})").seed == static_cast<std::uint64_t>(-5));
}

TEST_CASE("a choice of tools is taken where it chooses none", "[http]") {
  for (const char* choice : {"\"auto\"", "\"none\"", "null"})
    REQUIRE(refused_with("\"tool_choice\": " + std::string(choice)) == "-");
}

TEST_CASE("a body that is no JSON object in UTF-8 is refused, not crashed on", "[http]") {
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[1]"), std::string("3"), std::string("nul"),
        std::string("{\"a\":}"), std::string("{\"prompt\": \"\xff\"}"), std::string("{\"prompt\": \"\\ud800\"}"),
        std::string(100000, '['), std::string("{\"prompt\": \"a\", \"prompt\": \"b\"}"), std::string("\0\0\0", 3)})
    REQUIRE(refused(body).empty());
}
