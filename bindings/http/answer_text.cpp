#include "bindings/http/answer_text.hpp"

#include <algorithm>

namespace dculab::http {

AnswerPiece AnswerText::add(const engine::StreamNews& news) {
  AnswerPiece piece;
  for (std::size_t index = 0; index < news.tokens.size(); ++index) {
    ++piece.tokens;
    const bool is_last = news.has_ended && index + 1 == news.tokens.size();
    if (is_last && news.finish_reason == FinishReason::stop) break;  // a token that stops is no text
    kept_ += decoder_.push(news.tokens[index]);
    if (find_stop(piece)) return piece;
  }
  if (news.has_ended) {
    kept_ += decoder_.finish();
    if (find_stop(piece)) return piece;
    piece.text += kept_;
    kept_.clear();
    piece.finish_reason = news.finish_reason == FinishReason::stop ? "stop" : "length";
    return piece;
  }
  const std::size_t certain = certain_size();
  piece.text += kept_.substr(0, certain);
  kept_.erase(0, certain);
  return piece;
}

bool AnswerText::find_stop(AnswerPiece& piece) {
  std::size_t first = std::string::npos, size = 0;
  for (const std::string& stop : stops_.strings)
    if (const std::size_t found = kept_.find(stop); found < first) {
      first = found;
      size = stop.size();
    }
  if (first == std::string::npos) return false;
  piece.text += kept_.substr(0, first + (stops_.are_shown ? size : 0));
  piece.finish_reason = "stop";
  kept_.clear();
  return true;
}

// Bytes at the beginning that no stop string can begin in.
std::size_t AnswerText::certain_size() const {
  for (std::size_t begin = 0; begin < kept_.size(); ++begin) {
    const std::string_view rest = std::string_view(kept_).substr(begin);
    const auto may_begin = [rest](const std::string& stop) { return stop.starts_with(rest); };
    if (std::ranges::any_of(stops_.strings, may_begin)) return begin;
  }
  return kept_.size();
}

}  // namespace dculab::http
