#include "engine/probe/retention_time.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace dculab::engine {
namespace {

constexpr double kGoneSlows = 1.25;

}  // namespace

Seconds retention_time(Seconds warm, std::span<const ReadAfter> after) {
  const Seconds cold = after.back().pass;
  if (cold < kGoneSlows * warm) return {};
  const Seconds sought = warm + (1 - std::exp(-1.0)) * (cold - warm);
  const auto reached = std::ranges::find_if(after, [&](const ReadAfter& each) { return each.pass >= sought; });
  if (reached == after.begin()) return reached->wait;
  const ReadAfter& before = *std::prev(reached);
  return before.wait * std::pow(reached->wait / before.wait, (sought - before.pass) / (reached->pass - before.pass));
}

}  // namespace dculab::engine
