// Questions in ARC's format and conversations in ShareGPT's: what is read, and one message with its place for each
// mistake.
#include "config/questions_file.hpp"

#include <algorithm>
#include <string>

#include "config/conversations_file.hpp"
#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

// As in ARC-Easy; labels may be digits.
const std::string kQuestion =
    R"({"id":"Mercury_1","question":{"stem":"Which is hot?","choices":[{"text":"ice","label":"1"},)"
    R"({"text":"fire","label":"2"}]},"answerKey":"2"})";

std::string question_error(const std::string& text) {
  try {
    static_cast<void>(read_questions("q.jsonl", text));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string conversation_error(const std::string& text) {
  try {
    static_cast<void>(read_conversations("c.json", text));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("ARC in its own layout and in the Hub's is the same") {
  const auto foreign = [](const char* name) {
    return read_questions_file(DCULAB_SOURCE_DIR "/tests/data/foreign/traces/arc/" + std::string(name));
  };
  const auto own = foreign("arc_original_layout_sample.jsonl"), hub = foreign("arc_hub_layout_sample.jsonl");
  REQUIRE(hub.size() == own.size());
  for (std::size_t index = 0; index < own.size(); ++index) {
    CHECK(hub[index].id == own[index].id);
    CHECK(hub[index].stem == own[index].stem);
    CHECK(hub[index].choices == own[index].choices);
    CHECK(hub[index].answer == own[index].answer);
  }
  CHECK_THAT(question_error(R"({"question":"q","choices":{"text":["a","b"],"label":["A"]},"answerKey":"A"})"),
             ContainsSubstring("q.jsonl:1") && ContainsSubstring("lists of one length"));
  CHECK_THAT(question_error(R"({"question":"q","choices":{"text":["a","b"],"label":["A","B"]},"answerKey":"C"})"),
             ContainsSubstring("no choice has the label 'C'"));
}

TEST_CASE("a question of ARC is read, with a context where it has one") {
  const std::string with_context =
      R"({"context":"It is winter. ","distance_words":3,"question":{"stem":"S","choices":[{"text":"a","label":"A"},)"
      R"({"text":"b","label":"B"}]},"answerKey":"A","note":{"any":1}})";
  const auto questions = read_questions("q.jsonl", kQuestion + "\n\n" + with_context + "\n");
  REQUIRE(questions.size() == 2);
  CHECK(questions[0].id == "Mercury_1");
  CHECK(questions[0].stem == "Which is hot?");
  CHECK(questions[0].choices == std::vector<std::string>{"ice", "fire"});
  CHECK(questions[0].answer == 1);
  CHECK(questions[0].context.empty());
  CHECK(questions[1].context == "It is winter. ");
  CHECK(questions[1].answer == 0);
}

TEST_CASE("a question that cannot be asked is refused with its line") {
  CHECK_THAT(question_error(""), ContainsSubstring("q.jsonl: has no questions"));
  CHECK_THAT(question_error(kQuestion + "\n{\"question\""), ContainsSubstring("q.jsonl:2:"));
  CHECK_THAT(question_error(R"({"answerKey":"A"})"), ContainsSubstring("question"));
  CHECK_THAT(question_error(R"({"question":{"stem":"S","choices":[{"text":"a","label":"A"}]},"answerKey":"A"})"),
             ContainsSubstring("question.choices: must be a list of at least two"));
  std::string wrong_key = kQuestion;
  wrong_key.replace(wrong_key.rfind("\"2\""), 3, "\"C\"");
  CHECK_THAT(question_error(kQuestion + "\n" + wrong_key), ContainsSubstring("answerKey: no choice has the label 'C'"));
  CHECK_THAT(
      question_error(R"({"question":{"stem":"S","choices":[{"text":"a"},{"text":"b","label":"B"}]},"answerKey":"B"})"),
      ContainsSubstring("label"));
}

TEST_CASE("of a conversation the first answered turn of a human is taken") {
  const auto found = read_conversations("c.json", R"([
    {"id": "a", "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"},
                                  {"from": "human", "value": "More"}, {"from": "gpt", "value": "No"}]},
    {"id": "b", "conversations": [{"from": "gpt", "value": "x"}, {"from": "human", "value": "One"},
                                  {"from": "gpt", "value": ""}]},
    {"id": "c", "conversations": [{"from": "human", "value": "alone"}]},
    {"id": "d", "conversations": []},
    {"conversations": [{"from": "user", "value": "Q", "more": 1}, {"from": "assistant", "value": "A"}]}])");
  REQUIRE(found.size() == 3);
  CHECK(found[0].id == "a");
  CHECK(found[0].prompt == "Hi");
  CHECK(found[0].answer == "Hello");
  CHECK(found[1].prompt == "One");
  CHECK(found[1].answer.empty());
  CHECK(found[2].id.empty());
  CHECK(found[2].prompt == "Q");
}

TEST_CASE("a file that is no list of conversations is refused") {
  CHECK_THAT(conversation_error("{"), ContainsSubstring("c.json:1:"));
  CHECK_THAT(conversation_error("{}"), ContainsSubstring("c.json: must be a list of conversations"));
  CHECK_THAT(conversation_error("[]"), ContainsSubstring("has no turn of a human"));
  CHECK_THAT(conversation_error(R"([{"id": "a"}])"), ContainsSubstring("conversations"));
  CHECK_THAT(conversation_error(R"([{"conversations": 3}])"), ContainsSubstring("[0].conversations: must be a list"));
  CHECK_THAT(conversation_error(R"([{"conversations": [{"from": "human"}]}])"), ContainsSubstring("value"));
}

TEST_CASE("conversations that are none are refused with their lines, in few words") {
  CHECK_THAT(conversation_error("[{\"conversations\": []},\n {\"id\": 1}]"),
             ContainsSubstring("c.json:2: [1].conversations: missing"));
  std::string text = "[[]";
  for (int item = 1; item < 100'000; ++item) text += ",[]";
  const std::string reported = conversation_error(text + "]");
  CHECK(std::count(reported.begin(), reported.end(), '\n') == 20);
  CHECK_THAT(reported, ContainsSubstring("and 99,980 more problems"));
}

}  // namespace dculab::config
