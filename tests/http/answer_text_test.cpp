#include "bindings/http/answer_text.hpp"

#include <random>

#include "tests/support/catch.hpp"
#include "tests/support/model_folders.hpp"

using namespace dculab;
using http::AnswerPiece;
using http::AnswerText;

namespace {

const engine::Tokenizer& shipped_tokenizer() {
  static const engine::Tokenizer tokenizer = engine::Tokenizer::load(kShippedModel + "/tokenizer.json");
  return tokenizer;
}

std::vector<TokenId> tokens_of(const std::string& text) {
  return shipped_tokenizer().encode(text, engine::SpecialTokens::omit);
}

// All of an answer whose tokens come in groups.
AnswerPiece answer_of(const std::vector<TokenId>& tokens, std::size_t group, const http::StopRules& stops,
                      FinishReason reason = FinishReason::length) {
  AnswerText text(shipped_tokenizer(), engine::SpecialText::skip, stops);
  AnswerPiece whole;
  for (std::size_t begin = 0; begin < tokens.size() && !whole.finish_reason; begin += group) {
    const std::size_t end = std::min(begin + group, tokens.size());
    const bool is_last = end == tokens.size();
    const AnswerPiece piece = text.add({.tokens = {tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                                                   tokens.begin() + static_cast<std::ptrdiff_t>(end)},
                                        .has_ended = is_last,
                                        .finish_reason = is_last ? reason : FinishReason::none});
    whole.text += piece.text;
    whole.tokens += piece.tokens;
    whole.finish_reason = piece.finish_reason;
  }
  return whole;
}

}  // namespace

TEST_CASE("pieces put together are the text, however tokens are grouped", "[http]") {
  const std::string text = "Once upon a time, in a caf\u00e9 \U0001f600 far away, there was \u4e2d\u6587.";
  for (const std::size_t group : {1, 2, 3, 7, 1000}) {
    const AnswerPiece answer = answer_of(tokens_of(text), group, {});
    REQUIRE(answer.text == text);
    REQUIRE(answer.tokens == static_cast<int>(tokens_of(text).size()));
    REQUIRE(answer.finish_reason == "length");
  }
}

TEST_CASE("a stop string ends the text before it, wherever its tokens are cut", "[http]") {
  const std::string text = "one two three. four. five";
  for (const std::size_t group : {1, 2, 5, 100}) {
    AnswerPiece answer = answer_of(tokens_of(text), group, {.strings = {"five", ". f"}});
    REQUIRE(answer.text == "one two three");
    REQUIRE(answer.finish_reason == "stop");
    REQUIRE(answer.tokens < static_cast<int>(tokens_of(text).size()));
    answer = answer_of(tokens_of(text), group, {.strings = {". f"}, .are_shown = true});
    REQUIRE(answer.text == "one two three. f");
    answer = answer_of(tokens_of(text), group, {.strings = {"fivefold"}});
    REQUIRE(answer.text == text);
    REQUIRE(answer.finish_reason == "length");
  }
}

TEST_CASE("text that may become a stop string is kept back, and nothing else", "[http]") {
  AnswerText text(shipped_tokenizer(), engine::SpecialText::skip, {.strings = {"abcabd"}});
  const auto push = [&](const std::string& added) { return text.add({.tokens = tokens_of(added)}).text; };
  REQUIRE(push("xab") == "x");
  REQUIRE(push("cab").empty());
  REQUIRE(push("ca") == "abc");  // "abca" may go on to be one
  REQUIRE(push("z") == "abcaz");
}

TEST_CASE("stop strings of random texts are found as a search of the whole finds them", "[http]") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "ab "[random() % 3];
    const std::string stop = text.substr(random() % 30, 1 + random() % 6);
    const AnswerPiece answer = answer_of(tokens_of(text), 1 + random() % 4, {.strings = {stop}});
    CAPTURE(text, stop);
    REQUIRE(answer.text == text.substr(0, text.find(stop)));
    REQUIRE(answer.finish_reason == "stop");
  }
}

TEST_CASE("the token that stops a request is counted, and is no text", "[http]") {
  std::vector<TokenId> tokens = tokens_of("Hello");
  tokens.push_back(tokens_of("!").front());
  const AnswerPiece answer = answer_of(tokens, 1, {}, FinishReason::stop);
  REQUIRE(answer.text == "Hello");
  REQUIRE(answer.tokens == static_cast<int>(tokens.size()));
  REQUIRE(answer.finish_reason == "stop");
}

TEST_CASE("a stream that has been told to end keeps its failure", "[http]") {
  engine::TokenStream stream(1);
  stream.add(std::vector<TokenId>{3}, FinishReason::none, 0);
  stream.end("the server is stopping");
  stream.add(std::vector<TokenId>{4}, FinishReason::none, 0);  // of the step that ran
  const engine::StreamNews news = stream.wait(std::chrono::milliseconds(0));
  REQUIRE(news.has_ended);
  REQUIRE(news.failure == "the server is stopping");
  REQUIRE(news.tokens == std::vector<TokenId>{3});
}
