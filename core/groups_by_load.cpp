#include "core/groups_by_load.hpp"

namespace dculab {

std::vector<std::string> problems(const GroupsByLoad& groups) {
  std::vector<std::string> found;
  if (!(groups.waiting_below >= 0 && groups.waiting_below < groups.waiting_above))
    found.emplace_back("groups_by_load: waiting_below must be at least 0 and below waiting_above");
  if (!(groups.usage_below >= 0 && groups.usage_below < groups.usage_above))
    found.emplace_back("groups_by_load: usage_below must be at least 0 and below usage_above");
  return found;
}

HeadSetController::HeadSetController(const GroupsByLoad& groups)
    : groups_(groups), chosen_(groups.heads == HeadAssignment::few ? HeadSet::few : HeadSet::many) {}

HeadSet HeadSetController::look(int waiting, double usage) {
  if (groups_.heads != HeadAssignment::by_load) return chosen_;
  const HeadSet before = chosen_;
  if (waiting > groups_.waiting_above || usage > groups_.usage_above)
    chosen_ = HeadSet::few;
  else if (waiting <= groups_.waiting_below && usage <= groups_.usage_below)
    chosen_ = HeadSet::many;
  if (chosen_ != before) ++switches_;
  return chosen_;
}

HeadSetCounts& HeadSetCounts::operator+=(const HeadSetCounts& other) {
  for (std::size_t set = 0; set < kHeadSets; ++set) {
    requests[set] += other.requests[set];
    tokens[set] += other.tokens[set];
  }
  steps += other.steps;
  steps_of_both += other.steps_of_both;
  switches += other.switches;
  return *this;
}

}  // namespace dculab
