#include "core/serving_metrics.hpp"

#include <algorithm>

namespace dculab {

bool ServingMetrics::meets_objective(const Sequence& sequence, std::optional<double> slowdown) const {
  return (!objective_.ttft || sequence.ttft() <= *objective_.ttft) &&
         (!objective_.tpot || sequence.tpot() <= *objective_.tpot) &&
         (!objective_.latency || sequence.latency() <= *objective_.latency) &&
         (!objective_.slowdown || (slowdown && *slowdown <= *objective_.slowdown));
}

void ServingMetrics::add(const Sequence& sequence, std::optional<Seconds> alone) {
  const Seconds arrival = sequence.request.arrival;
  const Seconds last = sequence.token_times.back();
  begin_ = requests() == 0 ? arrival : std::min(begin_, arrival);
  last_arrival_ = requests() == 0 ? arrival : std::max(last_arrival_, arrival);
  end_ = requests() == 0 ? last : std::max(end_, last);
  ttft_.add(sequence.ttft());
  if (sequence.num_generated() > 1) tpot_.add(sequence.tpot());
  for (std::size_t token = 1; token < sequence.token_times.size(); ++token)
    itl_.add(sequence.token_times[token] - sequence.token_times[token - 1]);
  latency_.add(sequence.latency());
  std::optional<double> slowdown;
  if (alone) slowdown = sequence.latency() / *alone;
  if (slowdown) slowdown_.add(Seconds(*slowdown));
  within_ += meets_objective(sequence, slowdown) ? 1 : 0;
  if (sequence.sample == 0) prompt_tokens_ += sequence.num_prompt_tokens();
  if (sequence.sample == 0) padding_tokens_ += sequence.request.num_padding_tokens;
  duplicate_tokens_ += sequence.num_duplicate_tokens;
  output_tokens_ += sequence.num_generated();
  const int stored = sequence.request.num_received_tokens;
  cached_tokens_ += std::max(sequence.num_cached_tokens, stored);
  stored_tokens_ += stored;
  preemptions_ += sequence.num_preemptions;
}

bool ServingMetrics::queue_grew() const {
  constexpr double kGoodPart = 0.25;
  return arrival_span() > Seconds() && ttft_.largest() > kGoodPart * arrival_span();
}

}  // namespace dculab
