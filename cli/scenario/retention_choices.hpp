// Which tokens the KV cache keeps, or a decode loads, as a user asks for it: --kv-retention and its figures.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/kv/figures.hpp"

namespace CLI {
class App;
}

namespace dculab::cli {

// "all", "window", "sinks", "heavy-hitters" or "critical-blocks". Throws InputError.
[[nodiscard]] RetentionPolicy parse_policy(const std::string& text);

// --sink-tokens, --window-tokens, --heavy-hitter-tokens, --kv-budget and --recent-blocks.
void add_retention_figures(CLI::App& command, KvRetention& retention);

// "--kv-budget".
[[nodiscard]] const char* option_of(const KvFigure& figure);

using TakesFigure = std::function<bool(const KvPolicy&, const KvFigure&)>;
[[nodiscard]] bool counts(const KvPolicy& policy, const KvFigure& figure);

// A figure that none of `policies` takes does nothing: a slip. Throws InputError.
void refuse_idle_figures(const CLI::App& command, const std::vector<std::string>& policies,
                         const TakesFigure& takes = counts);

}  // namespace dculab::cli
