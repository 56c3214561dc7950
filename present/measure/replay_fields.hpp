// The fields of what `dculab replay` answers.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "present/measure/replay_report.hpp"
#include "present/output/field_json.hpp"

namespace dculab::present {

struct ReportedReplay {
  const ReplayedStep& step;
  const std::vector<study::ReplayedOp>& ops;
};

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<sim::ComparedLevel> {
  using Level = sim::ComparedLevel;
  static constexpr std::string_view id = "replayed_level";
  static constexpr std::string_view doc = "What reaches a memory level, loads and stores.";
  static constexpr auto fields =
      std::tuple(field("replayed_bytes", "of the recorded addresses", &Level::replayed),
                 field("closed_form_bytes", "by the closed form", &Level::closed_form),
                 field("replayed_hit_rate", "of the recorded addresses", unit::share, &Level::replayed_hit_rate),
                 field("closed_form_hit_rate", "by the closed form", unit::share, &Level::closed_hit_rate));
};

template <>
struct FieldList<sim::ReuseHistogram> {
  static constexpr std::string_view id = "reuse_distances";
  static constexpr std::string_view doc = "How many other lines are touched between two touches of a line.";
  static constexpr auto fields =
      std::tuple(field("first_touches", "of a line", unit::count, &sim::ReuseHistogram::first_touches),
                 field("touches", "by the distance's power of two", unit::count, &sim::ReuseHistogram::touches));
};

template <>
struct FieldList<study::ReplayedOp> {
  using Op = study::ReplayedOp;
  static constexpr std::string_view id = "replayed_op";
  static constexpr std::string_view doc = "A kernel's addresses, replayed through a machine's caches.";

  [[nodiscard]] static std::vector<std::pair<std::string, sim::ComparedLevel>> levels(const Op& each) {
    std::vector<std::pair<std::string, sim::ComparedLevel>> levels;
    for (const sim::ComparedLevel& level : each.comparison.levels) levels.emplace_back(level.name, level);
    return levels;
  }

  static constexpr auto fields = std::tuple(
      field("op", "its name", [](const Op& each) { return each.comparison.op; }),
      field("num_key_value_heads", "of a layer", unit::count, &Op::kv_heads),
      field("block_size", "of the KV cache", unit::tokens, &Op::block_size),
      field("kernel", "of the first launch", [](const Op& each) { return each.comparison.kernel; }),
      field("resources", "whose registers and LDS decide the occupancy",
            [](const Op& each) { return each.comparison.resources; }),
      field("accesses", "that were recorded", unit::count, [](const Op& each) { return each.comparison.accesses; }),
      field("workgroups", "of the first launch", unit::count,
            [](const Op& each) { return each.comparison.workgroups; }),
      field("workgroups_per_unit", "that a compute unit holds", unit::count,
            [](const Op& each) { return each.comparison.workgroups_per_unit; }),
      field("coalescing", "bytes that lanes asked for, of the bytes of the lines that they touched", unit::share,
            [](const Op& each) { return each.comparison.coalescing; }),
      field("lines_per_load", "that a wave's load touches", unit::count,
            [](const Op& each) { return each.comparison.lines_per_load; }),
      field("levels", "by the name of the memory level", &levels),
      field("reuse_distances", "where they were asked for", [](const Op& each) { return each.comparison.reuse; }));
};

template <>
struct FieldList<present::ReportedReplay> {
  using Self = present::ReportedReplay;
  static constexpr std::string_view id = "replay";
  static constexpr std::string_view doc = "What GPU kernels touch, beside what the closed form says.";
  static constexpr std::string_view csv_rows = "points";
  static constexpr auto fields = std::tuple(
      field("model", "as it was asked for", [](const Self& reported) { return reported.step.model; }),
      field("machine", "as it was asked for", [](const Self& reported) { return reported.step.machine; }),
      field("phase", "of the sequences", one_of("decode", "prefill"),
            [](const Self& reported) { return reported.step.phase; }),
      field("batch", "sequences", unit::count, [](const Self& reported) { return reported.step.batch; }),
      field("context", "of each sequence", unit::tokens, [](const Self& reported) { return reported.step.context; }),
      field("points", "op by op",
            [](const Self& reported) -> const std::vector<study::ReplayedOp>& { return reported.ops; }));
};

}  // namespace dculab
