// Where an executor stands among those that share its model.
#pragma once

#include <cstdint>

#include "engine/exchange/communicator.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

struct RankPlace {
  Communicator* communicator = nullptr;  // null: the executor has the whole model
  int vocab_size = 0;                    // of the whole model; the executor's own is its part, filled up

  [[nodiscard]] bool is_divided() const { return communicator != nullptr; }
  [[nodiscard]] int rank() const { return is_divided() ? communicator->rank() : 0; }
  [[nodiscard]] int ranks() const { return is_divided() ? communicator->ranks() : 1; }
};

// Of the tokens of a step, those that a rank routes to their experts and for which it adds up what these give.
struct OwnTokens {
  int first = 0;
  int count = 0;
};
[[nodiscard]] constexpr OwnTokens own_tokens(int tokens, int rank, int ranks) {
  const auto begin = [=](int index) { return static_cast<int>(std::int64_t{tokens} * index / ranks); };
  return {begin(rank), begin(rank + 1) - begin(rank)};
}

}  // namespace dculab::engine
