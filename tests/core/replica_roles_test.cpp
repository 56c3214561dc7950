// When replicas change between prefill and decode, on a clock that the test turns.
#include "core/replica_roles.hpp"

#include "tests/core/requests.hpp"
#include "tests/support/catch.hpp"

using namespace dculab;

namespace {

constexpr RoleSwitching kRoleRule{
    .prefill_above = 2, .prefill_below = 1, .decode_above = 0.9, .decode_below = 0.7, .hold = Seconds(1)};

using enum ReplicaRole;

// Two of each role, with so much to do.
std::vector<RoleLoad> four(double prompt_steps, double decode_share) {
  return {{prefill, prompt_steps, 0},
          {prefill, prompt_steps / 2, 0},
          {decode, 0, decode_share},
          {decode, 0, decode_share / 2}};
}

}  // namespace

TEST_CASE("the idlest decode replica helps with prompts once they have waited for the hold", "[replica_roles]") {
  RoleController controller(kRoleRule);
  const auto loads = four(4, 0.4);  // 3 steps for each, 0.3 of the room: 0.6 on one alone
  CHECK_FALSE(controller.look(loads, Seconds(10)));
  CHECK_FALSE(controller.look(loads, Seconds(10.9)));
  CHECK(controller.look(loads, Seconds(11)) == std::size_t{3});
}

TEST_CASE("a replica that is needed stays: the load of those it leaves must be below the limit", "[replica_roles]") {
  RoleController controller(kRoleRule);
  for (const double time : {0.0, 1.0, 2.0, 3.0}) CHECK_FALSE(controller.look(four(4, 0.6), Seconds(time)));  // 0.9
  for (const double time : {4.0, 5.0, 6.0}) CHECK_FALSE(controller.look(four(20, 2), Seconds(time)));  // both too long
}

TEST_CASE("a prefill replica helps with decodes, and one of each role stays", "[replica_roles]") {
  RoleController controller(kRoleRule);
  std::vector<RoleLoad> loads = four(0.5, 1.4);
  CHECK_FALSE(controller.look(loads, Seconds(0)));
  REQUIRE(controller.look(loads, Seconds(1)) == std::size_t{1});
  loads[1].role = decode;
  loads[1].decode_share = 3;
  for (const double time : {2.0, 3.0, 4.0}) CHECK_FALSE(controller.look(loads, Seconds(time)));
}

TEST_CASE("a queue that comes and goes changes nothing, and changes are a hold apart", "[replica_roles]") {
  RoleController controller(kRoleRule);
  for (int tenth = 0; tenth < 100; ++tenth)
    CHECK_FALSE(controller.look(tenth % 8 < 7 ? four(4, 0.4) : four(1, 0.4), Seconds(0.1 * tenth)));
  std::vector<RoleLoad> loads(6, {decode, 0, 0.1});
  loads[0] = {prefill, 40, 0};
  std::vector<double> changes;
  for (int tenth = 200; tenth < 300; ++tenth)
    if (const auto index = controller.look(loads, Seconds(0.1 * tenth))) {
      loads[*index].role = prefill;
      changes.push_back(0.1 * tenth);
    }
  REQUIRE(changes.size() == 4);  // one decode replica stays
  for (std::size_t i = 1; i < changes.size(); ++i) CHECK(changes[i] - changes[i - 1] >= 1 - 1e-9);
}

TEST_CASE("what a replica was sent is its load until it has ended it", "[replica_roles]") {
  EngineOptions options = options_with(16, 8, 100);
  RoleWork work;
  const Request prompt = request_of(0, 250, 1), answer = request_of(1, 60, 20);
  work.begin_prompt(prompt);
  work.begin_decode(answer);
  const RoleLoad load = work.load(prefill, options, 10);
  CHECK(load.prompt_steps == 2.5);
  CHECK(load.decode_share == 0.5);  // 80 tokens in 160 slots; one of 8 sequences
  work.end_prompt(prompt);
  work.end_decode(answer);
  CHECK(work.load(prefill, options, 10).prompt_steps == 0);
  CHECK(work.load(prefill, options, 10).decode_share == 0);
}

TEST_CASE("thresholds without a gap are refused", "[replica_roles]") {
  RoleSwitching rule = kRoleRule;
  CHECK(problems(rule).empty());
  rule.prefill_below = 2, rule.decode_below = 1, rule.hold = Seconds(-1);
  CHECK(problems(rule).size() == 3);
}
