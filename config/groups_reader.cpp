#include "config/groups_reader.hpp"

#include <array>

namespace dculab::config {
namespace {

constexpr int kMostFewHeads = 1 << 16;
constexpr int kMostWaiting = 1 << 24;
constexpr auto kAssignments = std::to_array<Choice<HeadAssignment>>(
    {{"by_load", HeadAssignment::by_load}, {"many", HeadAssignment::many}, {"few", HeadAssignment::few}});

}  // namespace

void read_groups_by_load(MapReader reader, std::optional<GroupsByLoad>& groups, FewHeadsChoice& choice) {
  if (!reader.is_present()) return;
  GroupsByLoad& read = groups.emplace();
  reader.optional("num_key_value_heads", choice.num_key_value_heads, between(1, kMostFewHeads));
  reader.optional("model", choice.model);
  if ((choice.num_key_value_heads > 0) != choice.model.empty())
    reader.complain(*reader.node(), reader.path() +
                                        ": needs num_key_value_heads or model, one of both: which heads "
                                        "are the few");
  reader.optional("heads", read.heads, kAssignments);
  for (const auto& [key, figure] :
       {std::pair{"waiting_above", &read.waiting_above}, {"waiting_below", &read.waiting_below}})
    reader.optional(key, *figure, between(0, kMostWaiting));
  for (const auto& [key, figure] : {std::pair{"usage_above", &read.usage_above}, {"usage_below", &read.usage_below}})
    reader.optional(key, *figure, between(0, 1));
  for (const std::string& problem : problems(read)) reader.complain(*reader.node(), "engine." + problem);
  reader.finish();
}

}  // namespace dculab::config
