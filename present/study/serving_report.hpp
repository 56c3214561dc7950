// What a serving run comes to, as tables and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/groups_by_load.hpp"
#include "core/serving_metrics.hpp"
#include "core/serving_timeline.hpp"
#include "present/output/report.hpp"

namespace dculab::present {

// A server with two sets of KV heads: what each served, and what the second takes.
struct HeadSetFigures {
  HeadSetCounts counts;
  int many = 0, few = 0;  // KV heads
  Bytes few_weights{};    // of a device
};

// "KV heads by load: 70 requests (1,900 tokens) with 8, 30 (800) with 2; ..."
[[nodiscard]] std::string head_set_line(const HeadSetFigures& figures);
[[nodiscard]] Json head_set_json(const HeadSetFigures& figures);

// Latencies in rows, mean and percentiles in columns.
[[nodiscard]] Table latency_table(const ServingMetrics& metrics);

// Who ran and waited, and how full the KV blocks were, in at most `rows` parts of about equally many steps; of several
// engines together, parts of the time.
[[nodiscard]] Table timeline_table(const ServingTimeline& timeline, std::int64_t num_blocks, int num_engines,
                                   std::size_t rows = 10);
[[nodiscard]] Json timeline_json(const ServingTimeline& timeline);

// Tokens whose K and V were not written (KvSkip), where there were any.
void add_skipped(std::int64_t padding, std::int64_t duplicates, Json& json);

// "61.5 requests/s, 13,000 tokens/s, ..." in lines.
[[nodiscard]] std::vector<std::string> throughput_lines(const ServingMetrics& metrics, const ServiceLevel& objective);

}  // namespace dculab::present
