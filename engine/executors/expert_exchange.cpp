#include "engine/executors/expert_exchange.hpp"

#include <algorithm>
#include <numeric>

namespace dculab::engine {

std::span<const std::int32_t> ExpertExchange::choices_of(int token) const {
  const auto each = static_cast<std::size_t>(per_token_);
  return std::span(choices_).subspan(static_cast<std::size_t>(token) * each, each);
}

void ExpertExchange::gather_choices(Communicator& communicator, std::span<const std::int32_t> chosen) {
  sizes_.clear();
  for (int rank = 0; rank < ranks_; ++rank)
    sizes_.push_back(static_cast<std::size_t>(own_tokens(tokens_, rank, ranks_).count) *
                     static_cast<std::size_t>(per_token_) * sizeof(std::int32_t));
  choices_.resize(static_cast<std::size_t>(tokens_) * static_cast<std::size_t>(per_token_));
  communicator.all_gather(std::as_bytes(chosen), sizes_, reinterpret_cast<std::byte*>(choices_.data()));
}

// How many tokens and rows go from rank to rank; and which rows this rank's experts get.
void ExpertExchange::count_rows(int rank) {
  const auto all = static_cast<std::size_t>(ranks_);
  sent_tokens_.assign(all * all, 0);
  sent_rows_.assign(all * all, 0);
  places_.assign(static_cast<std::size_t>(tokens_), -1);
  first_rows_.assign(static_cast<std::size_t>(held_) + 1, 0);
  std::int32_t received = 0;
  std::vector<std::uint8_t> reached(all);
  for (int source = 0; source < ranks_; ++source) {
    const OwnTokens own = own_tokens(tokens_, source, ranks_);
    for (int token = own.first; token < own.first + own.count; ++token) {
      std::ranges::fill(reached, std::uint8_t{0});
      for (const std::int32_t expert : choices_of(token)) {
        const auto target = static_cast<std::size_t>(rank_of(expert));
        ++sent_rows_[static_cast<std::size_t>(source) * all + target];
        if (reached[target]++ == 0) ++sent_tokens_[static_cast<std::size_t>(source) * all + target];
        if (rank_of(expert) == rank) ++first_rows_[static_cast<std::size_t>(expert - rank * held_) + 1];
      }
      if (reached[static_cast<std::size_t>(rank)] > 0) places_[static_cast<std::size_t>(token)] = received++;
    }
  }
  std::partial_sum(first_rows_.begin(), first_rows_.end(), first_rows_.begin());
}

void ExpertExchange::send(Communicator& communicator, std::span<const std::size_t> counts, std::vector<float>& into) {
  const auto all = static_cast<std::size_t>(ranks_), self = static_cast<std::size_t>(communicator.rank());
  sizes_.resize(counts.size());
  std::ranges::transform(counts, sizes_.begin(), [this](std::size_t rows) { return rows * width_ * sizeof(float); });
  std::size_t arriving = 0;
  for (std::size_t source = 0; source < all; ++source) arriving += counts[source * all + self];
  if (into.size() < arriving * width_) into.resize(arriving * width_);
  communicator.all_to_all(std::as_bytes(std::span(sending_)), sizes_, reinterpret_cast<std::byte*>(into.data()));
}

void ExpertExchange::dispatch(Communicator& communicator, int tokens, int num_experts, int per_token,
                              std::span<const std::int32_t> chosen, const float* x, int width) {
  const int rank = communicator.rank();
  tokens_ = tokens, ranks_ = communicator.ranks(), held_ = num_experts / ranks_, per_token_ = per_token;
  width_ = static_cast<std::size_t>(width);
  own_ = own_tokens(tokens, rank, ranks_);
  gather_choices(communicator, chosen);
  count_rows(rank);
  sending_.clear();
  for (int target = 0; target < ranks_; ++target)
    for (int token = 0; token < own_.count; ++token)
      if (std::ranges::any_of(choices_of(own_.first + token), [&](auto expert) { return rank_of(expert) == target; })) {
        const float* const row = x + static_cast<std::size_t>(token) * width_;
        sending_.insert(sending_.end(), row, row + width_);
      }
  send(communicator, sent_tokens_, received_);
  row_tokens_.resize(static_cast<std::size_t>(num_rows()));
  row_sources_.resize(row_tokens_.size());
  std::vector<std::int32_t> next(first_rows_.begin(), first_rows_.end() - 1);
  for (int source = 0; source < ranks_; ++source) {
    const OwnTokens own = own_tokens(tokens_, source, ranks_);
    for (int token = own.first; token < own.first + own.count; ++token)
      for (const std::int32_t expert : choices_of(token)) {
        if (rank_of(expert) != rank) continue;
        const auto row = static_cast<std::size_t>(next[static_cast<std::size_t>(expert - rank * held_)]++);
        row_tokens_[row] = places_[static_cast<std::size_t>(token)];
        row_sources_[row] = source;
      }
  }
}

void ExpertExchange::give_back(Communicator& communicator, const float* outputs) {
  sending_.clear();
  for (int target = 0; target < ranks_; ++target)
    for (std::size_t row = 0; row < row_sources_.size(); ++row)
      if (row_sources_[row] == target) {
        const float* const values = outputs + row * width_;
        sending_.insert(sending_.end(), values, values + width_);
      }
  const auto all = static_cast<std::size_t>(ranks_);
  std::vector<std::size_t> counts(all * all);  // the way back of sent_rows_
  for (std::size_t source = 0; source < all; ++source)
    for (std::size_t target = 0; target < all; ++target)
      counts[source * all + target] = sent_rows_[target * all + source];
  send(communicator, counts, returned_);
}

}  // namespace dculab::engine
