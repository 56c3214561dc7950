// Which tokens the KV cache keeps, or a decode loads, as JSON.
#pragma once

#include "core/kv/retention.hpp"
#include "present/output/report.hpp"

namespace dculab::present {

// policy, and every figure of kKvFigures: null where the policy does not take it.
[[nodiscard]] Json retention_json(const KvRetention& retention);

}  // namespace dculab::present
