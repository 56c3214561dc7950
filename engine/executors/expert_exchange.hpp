// The rows that ranks which share routed experts send each other in a layer: tokens to the ranks of their experts, and
// what those give back to where each token is routed. Experts are with the ranks in the order of their numbers, as many
// on each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/executors/rank_place.hpp"
#include "kernels/expert_ops.hpp"

namespace dculab::engine {

class ExpertExchange {
 public:
  // `tokens` of the step, of which this rank routes its own: rows of `x` [own tokens, width], `chosen` [own tokens,
  // per_token]. Afterwards the rank has each token once that goes to one of its experts. With a communicator.
  void dispatch(Communicator& communicator, int tokens, int num_experts, int per_token,
                std::span<const std::int32_t> chosen, const float* x, int width);

  // Of all tokens of the step: [tokens, per_token].
  [[nodiscard]] std::span<const std::int32_t> choices() const { return choices_; }

  // Rows that this rank's experts get, sorted by expert, then by token.
  [[nodiscard]] const float* tokens() const { return received_.data(); }               // [tokens received, width]
  [[nodiscard]] const std::int32_t* row_tokens() const { return row_tokens_.data(); }  // [rows]: of those tokens
  [[nodiscard]] const std::int32_t* first_rows() const { return first_rows_.data(); }  // [experts held + 1]
  [[nodiscard]] int num_rows() const { return first_rows_.back(); }

  // `outputs` [num_rows(), width] go back; returned() has the rows of this rank's own tokens, sorted by expert, then by
  // token, as route_tokens() numbers them: [own tokens * per_token, width].
  void give_back(Communicator& communicator, const float* outputs);
  [[nodiscard]] const float* returned() const { return returned_.data(); }

 private:
  [[nodiscard]] int rank_of(std::int32_t expert) const { return expert / held_; }
  [[nodiscard]] std::span<const std::int32_t> choices_of(int token) const;
  void gather_choices(Communicator& communicator, std::span<const std::int32_t> chosen);
  void count_rows(int rank);
  void send(Communicator& communicator, std::span<const std::size_t> counts, std::vector<float>& into);

  int tokens_ = 0, ranks_ = 0, held_ = 0, per_token_ = 0;
  std::size_t width_ = 0;
  OwnTokens own_;
  std::vector<std::int32_t> choices_;
  std::vector<std::int32_t> places_;  // [tokens]: of those received, -1 where a token is not
  std::vector<std::int32_t> row_tokens_, first_rows_{0};
  std::vector<std::int32_t> row_sources_;             // [rows]: the rank that routes the row's token
  std::vector<std::size_t> sent_tokens_, sent_rows_;  // [ranks, ranks]: from rank to rank
  std::vector<std::size_t> sizes_;                    // the same in bytes
  std::vector<float> sending_, received_, returned_;
};

}  // namespace dculab::engine
