#include "engine/speculation/prompt_lookup.hpp"

#include "tests/support/catch.hpp"

namespace dculab::engine {

TEST_CASE("what followed the last tokens before is found as vLLM finds it", "[speculation]") {
  const auto found = [](std::vector<TokenId> tokens, int shortest, int longest, int most) {
    const auto continuation = find_continuation(tokens, shortest, longest, most);
    return std::vector<TokenId>(continuation.begin(), continuation.end());
  };
  using Tokens = std::vector<TokenId>;
  CHECK(found({1, 2, 3, 4, 1, 2}, 1, 3, 2) == Tokens{3, 4});
  CHECK(found({1, 2, 3, 4, 1, 2}, 1, 3, 9) == Tokens{3, 4, 1, 2});
  CHECK(found({1, 2, 3, 4, 1, 2}, 3, 3, 2).empty());
  CHECK(found({9, 2, 7, 1, 2, 8, 1, 2}, 1, 3, 1) == Tokens{8});  // the longer n-gram, not the earlier one
  CHECK(found({9, 2, 7, 1, 2, 8, 1, 2}, 1, 1, 1) == Tokens{7});  // of equals the first
  CHECK(found({5, 5, 5}, 1, 1, 4) == Tokens{5, 5});
  CHECK(found({5, 5, 5}, 1, 4, 4) == Tokens{5});
  CHECK(found({1, 2, 3}, 1, 3, 4).empty());
  CHECK(found({1}, 1, 3, 4).empty());
}

}  // namespace dculab::engine
