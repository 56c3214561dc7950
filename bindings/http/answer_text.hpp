// The text of an answer as its tokens come, up to a stop string.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/generate/token_stream.hpp"
#include "engine/tokenizer/stream_decoder.hpp"

namespace dculab::http {

// A part of an answer, or the rest of it.
struct AnswerPiece {
  std::string text{};                          // whole characters
  int tokens = 0;                              // that it took
  std::optional<std::string> finish_reason{};  // "stop" or "length": it is the last one
};

struct StopRules {
  std::vector<std::string> strings{};
  bool are_shown = false;
};

class AnswerText {
 public:
  // `tokenizer` must outlive it.
  AnswerText(const engine::Tokenizer& tokenizer, engine::SpecialText special, StopRules stops)
      : decoder_(tokenizer, special), stops_(std::move(stops)) {}

  // Text that can still become part of a stop string is kept back until it cannot. After a piece with a finish reason
  // nothing more is to be added.
  [[nodiscard]] AnswerPiece add(const engine::StreamNews& news);

 private:
  [[nodiscard]] bool find_stop(AnswerPiece& piece);
  [[nodiscard]] std::size_t certain_size() const;

  engine::StreamDecoder decoder_;
  StopRules stops_;
  std::string kept_;  // the end of the text so far, as far as nobody has it
};

}  // namespace dculab::http
