#include "core/speculative_config.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace dculab {
namespace {

constexpr std::array kMethods = {
    std::pair{SpeculativeMethod::none, "none"}, std::pair{SpeculativeMethod::draft_model, "draft_model"},
    std::pair{SpeculativeMethod::ngram, "ngram"}, std::pair{SpeculativeMethod::medusa, "medusa"},
    std::pair{SpeculativeMethod::mtp, "mtp"}};

constexpr std::array kRejectionSampleMethods = {std::pair{RejectionSampleMethod::strict, "strict"},
                                                std::pair{RejectionSampleMethod::typical, "typical"},
                                                std::pair{RejectionSampleMethod::synthetic, "synthetic"}};

template <typename Value, std::size_t size>
std::string_view name_in(const std::array<std::pair<Value, const char*>, size>& names, Value value) {
  return std::ranges::find(names, value, &std::pair<Value, const char*>::first)->second;
}

template <typename Value, std::size_t size>
std::optional<Value> value_in(const std::array<std::pair<Value, const char*>, size>& names, std::string_view text) {
  for (const auto& [value, name] : names)
    if (text == name) return value;
  return std::nullopt;
}

}  // namespace

std::string_view name(SpeculativeMethod method) { return name_in(kMethods, method); }

std::string_view name(RejectionSampleMethod method) { return name_in(kRejectionSampleMethods, method); }

std::optional<RejectionSampleMethod> parse_rejection_sample_method(std::string_view text) {
  return value_in(kRejectionSampleMethods, text);
}

std::vector<std::string> problems(const SpeculativeConfig& config) {
  std::vector<std::string> found;
  if (!config.enabled()) return found;
  const int tokens = config.shape.num_tokens();
  if (tokens < 1 || tokens > kMostDraftTokens)
    found.push_back("num_speculative_tokens must be from 1 to " + std::to_string(kMostDraftTokens) + ", not " +
                    std::to_string(tokens));
  if (config.prompt_lookup_min < 1 || config.prompt_lookup_max < config.prompt_lookup_min)
    found.push_back("prompt_lookup_min must be at least 1, and prompt_lookup_max no less");
  if (config.method == SpeculativeMethod::ngram && !config.shape.is_chain())
    found.emplace_back("ngram drafts a chain: leave speculative_token_tree out");
  if (config.method == SpeculativeMethod::mtp && !config.shape.is_chain())
    found.emplace_back("mtp drafts a chain: leave speculative_token_tree out");
  const bool is_synthetic = config.rejection_sample_method == RejectionSampleMethod::synthetic;
  if (is_synthetic && config.synthetic_acceptance_rates.empty())
    found.emplace_back("rejection_sample_method synthetic needs synthetic_acceptance_rates");
  const auto is_rate = [](double rate) { return rate >= 0 && rate <= 1; };
  if (!std::ranges::all_of(config.synthetic_acceptance_rates, is_rate))
    found.emplace_back("synthetic_acceptance_rates must be from 0 to 1");
  if (!is_rate(config.posterior_threshold) || !is_rate(config.posterior_alpha))
    found.emplace_back("posterior_threshold and posterior_alpha must be from 0 to 1");
  return found;
}

}  // namespace dculab
