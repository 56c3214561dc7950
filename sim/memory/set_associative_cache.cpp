#include "sim/memory/set_associative_cache.hpp"

namespace dculab::sim {

SetAssociativeCache::SetAssociativeCache(double size, double line, int ways, SetIndex index) : index_(index) {
  const auto lines = static_cast<std::uint32_t>(std::clamp(size / line, 1.0, static_cast<double>(kNoLine)));
  ways_ = std::min(static_cast<std::uint32_t>(ways > 0 ? ways : kDefaultWays), lines);
  sets_ = lines / ways_;
  mask_ = std::has_single_bit(sets_) ? sets_ - 1 : 0;
  fold_ = std::max(1U, static_cast<std::uint32_t>(std::bit_width(sets_ - 1)));
  entries_.assign(std::size_t{sets_} * ways_, entry(kNoLine, LineState::clean));
}

}  // namespace dculab::sim
