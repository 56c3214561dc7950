// What a serving run comes to, as tables and as fields of JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/groups_by_load.hpp"
#include "core/serving_metrics.hpp"
#include "core/serving_timeline.hpp"
#include "present/output/field_json.hpp"

namespace dculab::present {

// A server with two sets of KV heads: what each served, and what the second takes.
struct HeadSetFigures {
  HeadSetCounts counts;
  int many = 0, few = 0;  // KV heads
  Bytes few_weights{};    // of a device
};

// "KV heads by load: 70 requests (1,900 tokens) with 8, 30 (800) with 2; ..."
[[nodiscard]] std::string head_set_line(const HeadSetFigures& figures);

// Latencies in rows, mean and percentiles in columns.
[[nodiscard]] Table latency_table(const ServingMetrics& metrics);

// Who ran and waited, and how full the KV blocks were, in at most `rows` parts of about equally many steps; of several
// engines together, parts of the time.
[[nodiscard]] Table timeline_table(const ServingTimeline& timeline, std::int64_t num_blocks, int num_engines,
                                   std::size_t rows = 10);

// "61.5 requests/s, 13,000 tokens/s, ..." in lines.
[[nodiscard]] std::vector<std::string> throughput_lines(const ServingMetrics& metrics, const ServiceLevel& objective);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::HeadSetFigures> {
  using Figures = present::HeadSetFigures;
  static constexpr std::string_view id = "groups_by_load";
  static constexpr std::string_view doc =
      "A server with two sets of KV heads. Where there are two values, the first is of the set with more heads.";
  static constexpr auto fields = std::tuple(
      field("num_key_value_heads", "of each set", unit::count,
            [](const Figures& figures) { return interval(figures.many, figures.few); }),
      field("requests", "that each set served; samples of a prompt count each", unit::count,
            [](const Figures& figures) { return figures.counts.requests; }),
      field("output_tokens", "that each set generated", unit::tokens,
            [](const Figures& figures) { return figures.counts.tokens; }),
      field("changes", "from one set to the other", unit::count,
            [](const Figures& figures) { return figures.counts.switches; }),
      field("steps", "of the scheduler", unit::count, [](const Figures& figures) { return figures.counts.steps; }),
      field("steps_of_both", "of these, that ran the model once with each set", unit::count,
            [](const Figures& figures) { return figures.counts.steps_of_both; }),
      field("second_set_weight_bytes", "that the second set takes on a device", &Figures::few_weights));
};

template <>
struct FieldList<TimelineInterval> {
  using Piece = TimelineInterval;
  static constexpr std::string_view id = "timeline_interval";
  static constexpr std::string_view doc =
      "A part of a serving run. Of one engine, means over its steps, weighted by their time; of several, sums over the "
      "engines of what each does on average over the time.";
  static constexpr auto fields =
      std::tuple(field("begin_seconds", "from the first arrival", &Piece::begin),
                 field("end_seconds", "from the first arrival", &Piece::end),
                 field("busy_seconds", "of it, in steps", &Piece::busy),
                 field("running", "sequences with KV blocks", unit::count, &Piece::running),
                 field("waiting", "requests without KV blocks", unit::count, &Piece::waiting),
                 field("used_blocks", "KV blocks in use", unit::count, &Piece::used_blocks),
                 field("unused_slots", "of their slots, those that hold no token", unit::share, &Piece::unused_slots),
                 field("new_tokens", "of prompts and answers", unit::tokens, &Piece::new_tokens),
                 field("preemptions", "of running requests", unit::count, &Piece::preemptions));
};

}  // namespace dculab
