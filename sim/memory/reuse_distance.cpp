#include "sim/memory/reuse_distance.hpp"

#include <bit>
#include <numeric>

namespace dculab::sim {

std::uint64_t ReuseHistogram::closer_than(Bytes capacity) const {
  const auto bytes = static_cast<std::uint64_t>(capacity.value());
  const auto bins = static_cast<std::ptrdiff_t>(std::bit_width(bytes));
  return std::accumulate(touches.begin(), touches.begin() + bins, std::uint64_t{0});
}

std::uint64_t ReuseHistogram::total() const { return std::accumulate(touches.begin(), touches.end(), first_touches); }

ReuseDistances::ReuseDistances(LineNumber lines, Bytes line) : last_touch_(lines, 0) {
  histogram_.line = line;
  // Twice the lines, so that renumbering, which is linear, happens at most once per that many touches.
  const std::size_t capacity = 2 * std::size_t{lines} + 1;
  line_at_.assign(capacity + 1, kNoLine);
  tree_.assign(capacity + 1, 0);
}

std::uint64_t ReuseDistances::touch(LineNumber line) {
  if (now_ + 1 == tree_.size()) renumber();
  std::uint64_t distance = kNever;
  if (const std::uint32_t last = last_touch_[line]; last != 0) {
    distance = distinct_ - touched_until(last);
    add(last, -1);
    line_at_[last] = kNoLine;
    const std::uint64_t bytes = distance * static_cast<std::uint64_t>(histogram_.line.value());
    ++histogram_.touches[static_cast<std::size_t>(std::bit_width(bytes))];
  } else {
    ++distinct_;
    ++histogram_.first_touches;
  }
  ++now_;
  last_touch_[line] = now_;
  line_at_[now_] = line;
  add(now_, 1);
  return distance;
}

void ReuseDistances::add(std::uint32_t time, std::int32_t change) {
  for (std::size_t node = time; node < tree_.size(); node += node & (~node + 1))
    tree_[node] += static_cast<std::uint32_t>(change);
}

std::uint32_t ReuseDistances::touched_until(std::uint32_t time) const {
  std::uint32_t sum = 0;
  for (std::uint32_t node = time; node > 0; node &= node - 1) sum += tree_[node];
  return sum;
}

// Only the order of the last touches matters: moves them to 1 .. distinct_.
void ReuseDistances::renumber() {
  std::uint32_t time = 0;
  for (std::uint32_t old = 1; old <= now_; ++old) {
    const LineNumber line = line_at_[old];
    if (line == kNoLine) continue;
    line_at_[++time] = line;
    last_touch_[line] = time;
  }
  std::fill(line_at_.begin() + time + 1, line_at_.end(), kNoLine);
  now_ = time;
  std::fill(tree_.begin(), tree_.end(), 0);
  for (std::uint32_t each = 1; each <= now_; ++each) add(each, 1);
}

}  // namespace dculab::sim
