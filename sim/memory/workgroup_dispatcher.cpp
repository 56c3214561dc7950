#include "sim/memory/workgroup_dispatcher.hpp"

#include <algorithm>

namespace dculab::sim {

WorkgroupDispatcher::WorkgroupDispatcher(const AddressTrace& trace, int compute_units, int workgroups_per_unit)
    : accesses_(trace.accesses.data()),
      wave_begin_(trace.wave_begin),
      waves_(static_cast<std::size_t>(trace.waves_per_workgroup)),
      units_(static_cast<std::size_t>(compute_units)) {
  // More places than workgroups would only be looked through in vain.
  const std::size_t workgroups = (wave_begin_.size() - 1) / waves_;
  slots_ = std::min(static_cast<std::size_t>(workgroups_per_unit), (workgroups + units_ - 1) / units_);
  places_.resize(slots_ * waves_ * units_);
  turn_.reserve(places_.size());
}

std::size_t WorkgroupDispatcher::free_slot(std::size_t unit) const {
  std::size_t slot = 0;
  for (std::size_t wave = 0; slot < slots_ && wave < waves_;) {
    const Wave& place = places_[(slot * waves_ + wave) * units_ + unit];
    const bool taken = place.next != place.end;
    wave = taken ? 0 : wave + 1;
    if (taken) ++slot;
  }
  return slot;
}

// Passes over workgroups that access nothing.
bool WorkgroupDispatcher::has_next() {
  const auto begin = [this](std::size_t workgroup) { return wave_begin_[workgroup * waves_]; };
  const std::size_t workgroups = (wave_begin_.size() - 1) / waves_;
  while (next_workgroup_ < workgroups && begin(next_workgroup_) == begin(next_workgroup_ + 1)) ++next_workgroup_;
  return next_workgroup_ < workgroups;
}

void WorkgroupDispatcher::start_workgroups() {
  for (std::size_t full_units = 0; full_units < units_ && has_next();) {
    const std::size_t unit = next_unit_;
    const std::size_t slot = free_slot(unit);
    next_unit_ = (next_unit_ + 1) % units_;
    full_units = slot == slots_ ? full_units + 1 : 0;
    if (slot == slots_) continue;
    const std::size_t first = next_workgroup_++ * waves_;
    for (std::size_t wave = 0; wave < waves_; ++wave)
      places_[(slot * waves_ + wave) * units_ + unit] = {wave_begin_[first + wave], wave_begin_[first + wave + 1]};
  }
  turn_.clear();
  for (std::uint32_t place = 0; place < places_.size(); ++place)
    if (places_[place].next != places_[place].end) turn_.push_back(place);
}

void WorkgroupDispatcher::finish_turn() {
  const std::size_t finished =
      std::erase_if(turn_, [this](std::uint32_t place) { return places_[place].next == places_[place].end; });
  if (finished > 0 && has_next()) start_workgroups();
}

}  // namespace dculab::sim
