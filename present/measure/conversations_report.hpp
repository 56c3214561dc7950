// How `bench --workload` shows served conversations.
#pragma once

#include "present/output/report.hpp"
#include "study/measure/served_conversations.hpp"

namespace dculab::present {

// A row for each variant.
[[nodiscard]] Report conversations_report(const study::ConversationQuestion& question,
                                          const study::ConversationAnswer& answer);

}  // namespace dculab::present
