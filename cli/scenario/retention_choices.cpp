#include "cli/scenario/retention_choices.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "cli/scenario/checks.hpp"
#include "cli/scenario/step_choices.hpp"
#include "core/error.hpp"

namespace dculab::cli {
namespace {

struct FigureOption {
  const char* option;
  const char* help;
};

// In the order of kKvFigures.
constexpr std::array<FigureOption, kKvFigures.size()> kFigureOptions{{
    {"--sink-tokens", "sinks: first tokens that stay"},
    {"--window-tokens", "Newest tokens that stay"},
    {"--heavy-hitter-tokens", "heavy-hitters: tokens with the most attention that stay"},
    {"--kv-budget", "critical-blocks: share of the blocks that a decode loads"},
    {"--recent-blocks", "critical-blocks: newest blocks, which are always loaded"},
}};
static_assert(std::ranges::all_of(kFigureOptions, [](const FigureOption& each) { return each.option != nullptr; }),
              "a figure of core/kv/figures.hpp has no option");

[[nodiscard]] std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

}  // namespace

RetentionPolicy parse_policy(const std::string& text) {
  if (const auto policy = parse_retention_policy(text)) return *policy;
  throw InputError("'" + text + "' is not a policy; use all, window, sinks, heavy-hitters or critical-blocks");
}

void add_retention_figures(CLI::App& command, KvRetention& retention) {
  for (std::size_t index = 0; index < kKvFigures.size(); ++index) {
    const KvFigure& figure = kKvFigures[index];
    const auto& [option, help] = kFigureOptions[index];
    if (figure.share != nullptr)
      command.add_option(option, retention.*figure.share, help)->check(fraction());
    else
      command.add_option(option, retention.*figure.count, help)->check(at_least(1));
  }
}

const char* option_of(const KvFigure& figure) {
  const auto found = std::ranges::find(kKvFigures, figure.name, &KvFigure::name);
  return kFigureOptions[static_cast<std::size_t>(found - kKvFigures.begin())].option;
}

bool counts(const KvPolicy& policy, const KvFigure& figure) { return policy.*figure.counts; }

void refuse_idle_figures(const CLI::App& command, const std::vector<std::string>& policies, const TakesFigure& takes) {
  for (const KvFigure& figure : kKvFigures) {
    const auto takes_it = [&](const std::string& policy) {
      return takes(kv_policy(parse_option("--kv-retention", policy, parse_policy)), figure);
    };
    refuse_idle(command, option_of(figure), std::ranges::none_of(policies, takes_it),
                "with --kv-retention " + joined(policies));
  }
}

}  // namespace dculab::cli
