#include "config/groups_reader.hpp"

#include <array>
#include <utility>

#include "config/key_description.hpp"

namespace dculab::config {
namespace {

constexpr int kMostFewHeads = 1 << 16;
constexpr int kMostWaiting = 1 << 24;
constexpr auto kAssignments = std::to_array<Choice<HeadAssignment>>(
    {{"by_load", HeadAssignment::by_load}, {"many", HeadAssignment::many}, {"few", HeadAssignment::few}});

struct GroupsChoice {
  GroupsByLoad groups;
  FewHeadsChoice few;
};

struct GroupsKeys {
  using Target = GroupsChoice;
  static constexpr KeyTraits kWaiting{.bounds = between(0, kMostWaiting), .unit = "requests"};
  static constexpr KeyTraits kUsage{.bounds = between(0, 1), .unit = unit::share};
  static constexpr auto keys = std::tuple(
      value("num_key_value_heads", [](GroupsChoice& choice) -> auto& { return choice.few.num_key_value_heads; },
            "the few heads: means of the model's own, sharing its other weights; the model's number divided by a power "
            "of two",
            {.bounds = between(1, kMostFewHeads), .unit = "heads", .absent = "`model` says"}),
      value(
          "model", [](GroupsChoice& choice) -> auto& { return choice.few.model; },
          "instead, a model merged before, as a folder or a name; all its weights are kept beside the model's"),
      word(
          "heads", [](GroupsChoice& choice) -> auto& { return choice.groups.heads; }, kAssignments,
          "`many`, `few`: for all requests, for comparison. Both sets are in memory in any case"),
      value(
          "waiting_above", [](GroupsChoice& choice) -> auto& { return choice.groups.waiting_above; },
          "waiting requests above which new requests get few heads", kWaiting),
      value(
          "waiting_below", [](GroupsChoice& choice) -> auto& { return choice.groups.waiting_below; },
          "waiting requests at or below which they may get many again", kWaiting),
      value(
          "usage_above", [](GroupsChoice& choice) -> auto& { return choice.groups.usage_above; },
          "KV blocks in use above which new requests get few heads", kUsage),
      value(
          "usage_below", [](GroupsChoice& choice) -> auto& { return choice.groups.usage_below; },
          "KV blocks in use at or below which they may get many again; many heads require both conditions", kUsage));

  static void check(MapReader& reader, GroupsChoice& choice) {
    if ((choice.few.num_key_value_heads > 0) != choice.few.model.empty())
      reader.complain(*reader.node(), reader.path() +
                                          ": needs num_key_value_heads or model, one of both: which heads "
                                          "are the few");
    for (const std::string& problem : problems(choice.groups)) reader.complain(*reader.node(), "engine." + problem);
  }
};

}  // namespace

void read_groups_by_load(MapReader reader, std::optional<GroupsByLoad>& groups, FewHeadsChoice& choice) {
  if (!reader.is_present()) return;
  GroupsChoice read{{}, choice};
  read_section<GroupsKeys>(std::move(reader), read);
  groups = read.groups;
  choice = read.few;
}

std::vector<FileKey> groups_by_load_keys() { return keys_of<GroupsKeys>(); }

}  // namespace dculab::config
