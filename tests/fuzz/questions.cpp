// Multiple-choice questions in ARC's format.
#include <string>
#include <vector>

#include "config/questions_file.hpp"
#include "tests/fuzz/targets.hpp"

namespace dculab::fuzz {
namespace {

std::string arc_lines(const std::vector<config::Question>& questions) {
  std::string text;
  for (const config::Question& question : questions) {
    text += R"({"context":)" + json_string(question.context) + R"(,"answerKey":"label )" +
            std::to_string(question.answer) + R"(","question":{"stem":)" + json_string(question.stem);
    for (std::size_t index = 0; index < question.choices.size(); ++index)
      text += (index == 0 ? R"(,"choices":[{"text":)" : R"(,{"text":)") + json_string(question.choices[index]) +
              R"(,"label":"label )" + std::to_string(index) + "\"}";
    text += "]}}\n";
  }
  return text;
}

}  // namespace

void read_question_lines(std::string_view input) {
  const auto questions = config::read_questions("fuzz.jsonl", std::string(input));
  require(!questions.empty(), "there are questions");
  for (const config::Question& question : questions) {
    require(question.choices.size() >= 2, "there is a choice");
    require(question.answer >= 0 && static_cast<std::size_t>(question.answer) < question.choices.size(),
            "the right answer is one of the choices");
    require(!question.stem.empty(), "something is asked");
  }
  const std::string text = arc_lines(questions);
  require(arc_lines(read_back([&] { return config::read_questions("again.jsonl", text); })) == text,
          "questions are read back as written");
}

}  // namespace dculab::fuzz
