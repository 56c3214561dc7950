// Where weights lie, and how results cross between devices.
#include <algorithm>
#include <cmath>

#include "config/number_text.hpp"
#include "config/unit_text.hpp"
#include "core/letter_case.hpp"
#include "study/diagnose/candidate.hpp"

namespace dculab::study {
namespace {

// From DDR4 of two channels, 34 GB/s, half of it reached, to DDR5 of twelve, 460 GB/s.
constexpr double kLeastHostMemory = 17e9, kMostHostMemory = 460e9;
// Copies reach from 40 % of the link, pageable or in small pieces, to all of it: an assumption.
constexpr double kLeastLinkShare = 0.4;
constexpr double kLeastShareElsewhere = 0.02;  // of the weights: an assumption
// An all-reduce of few bytes over PCIe and host memory: NCCL's and RCCL's take some 20 us at best (tuning_model_0); 500
// us were seen between V100s (meta-pytorch/gpt-fast issue 111).
constexpr double kLeastExchange = 20e-6, kMostExchange = 1e-3;

[[nodiscard]] bool fits(const StepFacts& facts) {
  return facts.prediction.capacity.max_sequences >= static_cast<std::int64_t>(facts.asked.batch);
}

void add_host_link(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found) {
  const StepFacts& facts = evidence.any();
  if (!facts.machine().host_link) return;
  const bool is_full = !std::ranges::all_of(evidence.steps, fits);
  found.push_back(
      {.cause = Cause::weights_over_host_link,
       .least = kLeastShareElsewhere,
       .most = 1 / kLeastLinkShare,
       .odds = is_full ? kStated : kUnusual,
       .because =
           is_full ? "weights and KV do not fit in the device's memory" : "weights and KV fit in the device's memory",
       .extra = [](const StepFacts& step,
                   double amount) { return amount * step.weights() / *step.machine().host_link; },
       .figure =
           [](const StepFacts& step, double amount) {
             const std::string link = " over the host link of " + config::short_text(*step.machine().host_link);
             if (amount <= 1) return config::percent(amount, 2) + " of the step's weights" + link;
             return "all of the step's weights" + link + " at " + config::percent(1 / amount, 2) + " of its peak";
           }});
}

void add_layers_on_host(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found) {
  const StepFacts& facts = evidence.any();
  if (!evidence.is_decode() || facts.machine().kind == lower::DeviceKind::cpu) return;
  // Servers run no layers there. llama.cpp of 2024 leaves all of them there unless it is told how many to offload
  // (-ngl); llama-bench, whose results are files, offloads all.
  if (lower_case(facts.machine().stack.program) != "llama.cpp") return;
  const bool is_default = evidence.question.files.empty();
  found.push_back(
      {.cause = Cause::layers_on_host,
       .least = kLeastShareElsewhere / kMostHostMemory,
       .most = 1 / kLeastHostMemory,
       .odds = is_default ? kStated : kUnusual,
       .because = is_default ? "llama.cpp leaves layers on the host unless -ngl says how many to offload"
                             : "llama-bench offloads all layers",
       .extra = [](const StepFacts& step, double amount) { return Seconds(amount * step.weights().value()); },
       .figure =
           [](const StepFacts&, double amount) {
             return "weights read from host memory at " + config::short_text(BytesPerSecond(1 / amount)) +
                    ", or a part of them slower";
           }});
}

// A message through host memory crosses the link twice: at its full rate where an exchange takes the shortest time, at
// an eighth of it where it takes the longest, as copies through pageable memory do, or a link of fewer lanes.
[[nodiscard]] Seconds through_host(const StepFacts& facts, double exchange_seconds) {
  constexpr double kSlowest = 8;
  const auto& link = facts.machine().host_link;
  if (!link) return Seconds{};
  const double slow =
      std::log(std::max(1.0, exchange_seconds / kLeastExchange)) / std::log(kMostExchange / kLeastExchange);
  return std::pow(kSlowest, slow) * (2 * facts.collective_bytes / *link);
}

void add_exchange(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found) {
  if (evidence.any().collectives == 0) return;
  found.push_back({.cause = Cause::slow_exchange,
                   .least = kLeastExchange,
                   .most = kMostExchange,
                   .extra =
                       [](const StepFacts& facts, double amount) {
                         const double scale = std::min(1.0, amount / kLeastExchange);  // nothing adds nothing
                         return std::max(Seconds{}, Seconds(facts.collectives * amount) +
                                                        scale * through_host(facts, amount) - facts.exchange);
                       },
                   .figure =
                       [](const StepFacts& facts, double amount) {
                         return config::short_text(Seconds(amount)) + " for each of " +
                                config::number(facts.collectives, 4) + " exchanges; predicted are " +
                                config::short_text(facts.exchange * (1 / facts.collectives));
                       }});
}

}  // namespace

void add_placement_candidates(const DiagnosisEvidence& evidence, std::vector<CauseCandidate>& found) {
  add_host_link(evidence, found);
  add_layers_on_host(evidence, found);
  add_exchange(evidence, found);
}

}  // namespace dculab::study
