// Multiple-choice questions of ARC, one JSON object per line, in its own layout or in the Hub's (allenai/ai2_arc):
//
//   {"id": "...", "question": {"stem": "...", "choices": [{"text": "...", "label": "A"}, ...]}, "answerKey": "A"}
//   {"id": "...", "question": "...", "choices": {"text": ["...", ...], "label": ["A", ...]}, "answerKey": "A"}
//
// A "context" beside them is text that stands before the question; other keys are not looked at. Format: ARC, Clark et
// al. 2018 (arXiv:1803.05457), files ARC-Challenge-*.jsonl and ARC-Easy-*.jsonl.
#pragma once

#include <string>
#include <vector>

namespace dculab::config {

struct Question {
  std::string id;
  std::string context;  // often empty
  std::string stem;
  std::vector<std::string> choices;  // their texts
  int answer = 0;                    // index of the right one
};

// Throws InputError with every problem as file:line.
[[nodiscard]] std::vector<Question> read_questions(const std::string& file, const std::string& text);
[[nodiscard]] std::vector<Question> read_questions_file(const std::string& path);

}  // namespace dculab::config
