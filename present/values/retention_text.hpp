// Which tokens the KV cache keeps, or a decode loads, in words and as JSON.
#pragma once

#include <string>

#include "core/kv/retention.hpp"
#include "present/output/report.hpp"

namespace dculab::present {

// As options write it: "heavy-hitters".
[[nodiscard]] std::string policy_text(RetentionPolicy policy);

// With the tokens kept, or the share loaded: "all", "window 256", "sinks 4 + 252", "heavy-hitters 128 + 128",
// "critical-blocks 25 %".
[[nodiscard]] std::string retention_text(const KvRetention& retention);

// policy, and every figure of kKvFigures: null where the policy does not take it.
[[nodiscard]] Json retention_json(const KvRetention& retention);

}  // namespace dculab::present
