// Requests whose prompts begin alike, for tests of what is shared between them.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "core/request.hpp"

namespace dculab {

struct Workload {
  std::vector<Request> requests;
  std::vector<int> arrivals;
};

// first, first + 1, ...
inline std::vector<TokenId> counted(int count, TokenId first = 0) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(first + i);
  return tokens;
}

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  int pick(int low, int high) { return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1)); }

 private:
  std::mt19937 random_;
};

// Prompts that begin alike: one of three system prompts of up to 64 tokens, then something of their own, or nothing.
inline Workload conversations(unsigned seed, int count, int most_samples) {
  Dice dice(seed);
  std::vector<std::vector<TokenId>> systems(3);
  for (auto& system : systems)
    for (int length = dice.pick(1, 4) * 16 - dice.pick(0, 1) * 3; length > 0; --length)
      system.push_back(dice.pick(0, 49));
  Workload work;
  int arrival = 0;
  for (int index = 0; index < count; ++index) {
    Request request;
    request.id = 10 * index;
    request.n = dice.pick(1, most_samples);
    request.prompt_token_ids = systems[static_cast<std::size_t>(dice.pick(0, 2))];
    for (int own = dice.pick(-10, 30); own > 0; --own) request.prompt_token_ids.push_back(dice.pick(0, 49));
    request.max_tokens = dice.pick(1, 30);
    request.sampling.seed = static_cast<std::uint64_t>(dice.pick(0, 1000));
    if (index % 3 == 0) request.stop_tokens = {7, 8};
    work.requests.push_back(request);
    work.arrivals.push_back(arrival += dice.pick(0, 6));
  }
  return work;
}

}  // namespace dculab
