#include "sim/cost/alike_ops.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace dculab::sim {
namespace {

[[nodiscard]] std::uint64_t key_of(const Op& op) {
  std::uint64_t key = 0;
  const auto add = [&key](auto value) { key = (key ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15; };
  add(op.kind), add(op.weight), add(op.input), add(op.m), add(op.n), add(op.k);
  return key ^ key >> 32;
}

// But for the layers that they are in.
[[nodiscard]] bool do_the_same(const Op& a, const Op& b) {
  Op other = b;
  other.layer_kind = a.layer_kind;
  other.count = a.count;
  other.adds_layer_before = a.adds_layer_before;
  return a == other;
}

}  // namespace

AlikeOps::AlikeOps(std::span<const Op> ops) {
  entries_.reserve(ops.size());
  for (const Op& op : ops) entries_.push_back({.kind = op.layer_kind, .executions = op.count});
  if (std::ranges::all_of(entries_, [](const Entry& entry) { return entry.kind == 0; })) return;
  std::array<std::int32_t, 64> latest;  // of ops whose keys end alike
  latest.fill(-1);
  for (std::size_t index = 0; index < ops.size(); ++index) {
    Entry& entry = entries_[index];
    entry.key = key_of(ops[index]);
    entry.before = std::exchange(latest[entry.key % latest.size()], static_cast<std::int32_t>(index));
    for (std::int32_t before = entry.before; before >= 0;) {
      const auto place = static_cast<std::size_t>(before);
      Entry& other = entries_[place];
      before = other.before;
      if (other.key != entry.key || other.kind == entry.kind || !do_the_same(ops[place], ops[index])) continue;
      other.executions += ops[index].count;
      entry.first = static_cast<std::int32_t>(place);
    }
  }
}

std::optional<std::size_t> AlikeOps::first(std::size_t index) const {
  const std::int32_t first = entries_[index].first;
  return first < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(first));
}

}  // namespace dculab::sim
