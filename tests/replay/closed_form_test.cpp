// The closed forms of bytes and hit rates against the replay of what the kernels really touch.
#include <algorithm>
#include <cmath>
#include <string>

#include "tests/replay/kernel_grid.hpp"
#include "tests/replay/replay_grid.hpp"
#include "tests/support/catch.hpp"

namespace dculab {
namespace {

// One case in kEveryStep: odd, so that every value of the axes, most of which have two, comes up. The long test takes
// more of them.
constexpr std::size_t kEveryStep = 9, kEveryStepOfLong = 3;

std::vector<ReplayCase> thinned_steps(const std::vector<ReplayCase>& cases, std::size_t every) {
  std::vector<ReplayCase> some;
  for (std::size_t i = 0; i < cases.size(); i += every) some.push_back(cases[i]);
  return some;
}

std::string text(const ReplayOutcome& outcome) {
  const auto& levels = outcome.comparison.levels;
  return outcome.what.text() + " on " + outcome.machine + ": DRAM bytes off by " +
         std::to_string(100 * outcome.dram_error()) + " %, L2 hit rate " +
         std::to_string(100 * levels[levels.size() - 2].replayed_hit_rate) + " % and by the closed form " +
         std::to_string(100 * levels[levels.size() - 2].closed_hit_rate) + " %\n";
}

void check_closed_form(const std::vector<ReplayCase>& cases) {
  std::vector<ReplayOutcome> outcomes;
  std::string failing;
  replay_cases(cases, grid_machines(), [&](const ReplayOutcome& outcome) {
    outcomes.push_back(outcome);
    if (!outcome.dram_holds() || !outcome.l2_hit_holds()) failing += text(outcome);
  });
  REQUIRE(outcomes.size() >= cases.size());
  const ReplayScore total = score(outcomes);
  INFO(outcomes.size() << " outcomes, those that fail:\n" << failing);
  CHECK(total.dram_within_10_percent >= 0.9);
  CHECK(total.l2_hit_within_5_points >= 0.9);
}

}  // namespace

TEST_CASE("decode attention: closed-form DRAM bytes and L2 hit rates are those of the replay on nine of ten cases",
          "[once]") {
  check_closed_form(thinned_steps(decode_grid(GridSize::quick), kEveryStep));
}

TEST_CASE("decode attention: the same of more cases", "[.long]") {
  check_closed_form(thinned_steps(decode_grid(GridSize::quick), kEveryStepOfLong));
}

TEST_CASE("prefill attention: closed-form DRAM bytes and L2 hit rates are those of the replay on nine of ten cases",
          "[once]") {
  check_closed_form(thinned_steps(prefill_grid(GridSize::quick), 3));
}

TEST_CASE("prefill attention: the same of more cases", "[.long]") { check_closed_form(prefill_grid(GridSize::quick)); }

// Of outcomes that differ in their block size or their KV heads alone.
bool differ_in_one_choice(const ReplayOutcome& one, const ReplayOutcome& other) {
  ReplayCase same_block = other.what, same_heads = other.what;
  same_block.block_size = one.what.block_size;
  same_heads.kv_heads = one.what.kv_heads;
  return one.machine == other.machine && one.what.text() != other.what.text() &&
         (same_block.text() == one.what.text() || same_heads.text() == one.what.text());
}

// Whether the closed form has the same order at `level`. Bytes within 2 % of each other may be either way round.
bool agree_on_order(const ReplayOutcome& one, const ReplayOutcome& other, std::size_t level) {
  constexpr double kAlike = 0.02;
  const sim::ComparedLevel &a = one.comparison.levels[level], &b = other.comparison.levels[level];
  if (std::abs(a.replayed / b.replayed - 1) <= kAlike) return true;
  return (a.replayed < b.replayed) == (a.closed_form < b.closed_form);
}

// Returns how many pairs differ in one choice.
int check_order(const std::vector<ReplayCase>& cases) {
  std::vector<ReplayOutcome> outcomes;
  replay_cases(cases, kernel_machines(), [&](const ReplayOutcome& outcome) { outcomes.push_back(outcome); });
  int pairs = 0;
  for (const ReplayOutcome& one : outcomes)
    for (const ReplayOutcome& other : outcomes) {
      if (!differ_in_one_choice(one, other)) continue;
      const std::size_t dram = one.comparison.levels.size() - 1;
      INFO(one.what.text() << " and " << other.what.text() << " on " << one.machine);
      CHECK(agree_on_order(one, other, dram));
      CHECK(agree_on_order(one, other, dram - 1));
      ++pairs;
    }
  return pairs;
}

std::vector<ReplayCase> cases_of_heads(std::initializer_list<int> head_dims) {
  std::vector<ReplayCase> cases;
  for (const ReplayCase& each : decode_grid(GridSize::quick))
    if (each.context == 250 && each.batch == 8 && std::ranges::find(head_dims, each.head_dim) != head_dims.end())
      cases.push_back(each);
  return cases;
}

TEST_CASE("the closed form orders block sizes and group sizes as the replay does", "[once]") {
  CHECK(check_order(cases_of_heads({64})) > 100);
}

TEST_CASE("it orders those of larger heads so too", "[.long]") { CHECK(check_order(cases_of_heads({128})) > 100); }

TEST_CASE("the cases that are run have odd head sizes, large batches and partitions") {
  const std::vector<ReplayCase> cases = thinned_steps(decode_grid(GridSize::quick), kEveryStep);
  const auto some = [&cases](int ReplayCase::*value, int wanted) {
    return std::any_of(cases.begin(), cases.end(), [&](const ReplayCase& each) { return each.*value == wanted; });
  };
  CHECK(some(&ReplayCase::head_dim, 80));
  CHECK(some(&ReplayCase::batch, 64));
  CHECK(some(&ReplayCase::partition_tokens, 512));
}

TEST_CASE("the grid has every case once, and both ways of sharing KV") {
  for (const GridSize size : {GridSize::quick, GridSize::full}) {
    const std::vector<ReplayCase> cases = decode_grid(size);
    std::vector<std::string> names;
    for (const ReplayCase& each : cases) names.push_back(each.text());
    std::sort(names.begin(), names.end());
    CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
    for (const int heads_per_workgroup : {0, 1})
      CHECK(std::any_of(cases.begin(), cases.end(),
                        [&](const ReplayCase& each) { return each.heads_per_workgroup == heads_per_workgroup; }));
  }
}

}  // namespace dculab
