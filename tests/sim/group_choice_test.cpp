// The rule by which KV heads are chosen, on options made up by hand.
#include "sim/study/group_choice.hpp"

#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

GroupOption option(int kv_heads, double speed, std::optional<double> loss) {
  return {kv_heads, speed, Bytes(1024.0 * kv_heads), loss};
}

TEST_CASE("the fastest choice that loses little enough is taken") {
  const std::vector<GroupOption> options{option(32, 100, 0), option(16, 150, 0.02), option(8, 200, 0.04),
                                         option(4, 250, 0.2)};
  const auto verdict = choose_group(options, 0.05, 0.05);
  REQUIRE(verdict);
  CHECK(options[verdict->best].kv_heads == 8);
  CHECK(options[*verdict->runner_up].kv_heads == 16);
  CHECK(options[*verdict->refused].kv_heads == 4);
}

TEST_CASE("where speed ties, heads are kept") {
  const std::vector<GroupOption> options{option(32, 100, 0), option(16, 199, 0.02), option(8, 200, 0.04)};
  CHECK(options[choose_group(options, 0.05, 0.05)->best].kv_heads == 16);
  CHECK(options[choose_group(options, 0.05, 0)->best].kv_heads == 8);
  CHECK(options[choose_group(options, 0.03, 1.5)->best].kv_heads == 32);
}

TEST_CASE("what does not fit, or was not measured, is not chosen") {
  const std::vector<GroupOption> options{option(32, 0, 0), option(16, 150, std::nullopt), option(8, 200, 0.04)};
  CHECK(options[choose_group(options, 0.05, 10)->best].kv_heads == 8);
  CHECK_FALSE(choose_group(options, 0.01, 0.05));
  CHECK(pareto_front(options) == std::vector<bool>{false, false, true});
}

TEST_CASE("on the front stands what nothing else beats in every respect") {
  const std::vector<GroupOption> options{option(32, 100, 0), option(16, 90, 0.02), option(8, 200, 0.3),
                                         option(4, 250, 0.2)};
  // 16 is slower than 32 but smaller; 8 is slower, larger and worse than 4.
  CHECK(pareto_front(options) == std::vector<bool>{true, true, false, true});
}

}  // namespace
}  // namespace dculab::sim::test
