// The figures of the KV policies, for all that reads, writes or checks them. A policy with a new one adds a row here.
#pragma once

#include "core/kv/table.hpp"

namespace dculab {

// A figure of policies: its name in files, what it is, whose it is, and where it lies, as a count or as a share in
// (0, 1].
struct KvFigure {
  std::string_view name;
  std::string_view meaning;
  bool KvPolicy::*counts;
  int KvRetention::*count = nullptr;
  double KvRetention::*share = nullptr;  // where `count` is null
};

inline constexpr auto kKvFigures = std::to_array<KvFigure>({
    {.name = "sink_tokens",
     .meaning = "first tokens that a policy keeps",
     .counts = &KvPolicy::has_sinks,
     .count = &KvRetention::sink_tokens},
    {.name = "window_tokens",
     .meaning = "last tokens that a policy keeps",
     .counts = &KvPolicy::has_window,
     .count = &KvRetention::window_tokens},
    {.name = "heavy_hitter_tokens",
     .meaning = "tokens with the largest attention sums that a policy keeps",
     .counts = &KvPolicy::has_heavy_hitters,
     .count = &KvRetention::heavy_hitter_tokens},
    {.name = "budget",
     .meaning = "`critical_blocks`: the share of a sequence's blocks that a decode loads",
     .counts = &KvPolicy::has_budget,
     .share = &KvRetention::kv_budget},
    {.name = "recent_blocks",
     .meaning = "`critical_blocks`: how many of them are the last ones",
     .counts = &KvPolicy::has_budget,
     .count = &KvRetention::recent_blocks},
});

}  // namespace dculab
