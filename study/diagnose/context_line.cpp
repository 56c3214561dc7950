#include "study/diagnose/context_line.hpp"

#include <map>
#include <set>
#include <vector>

namespace dculab::study {
namespace {

struct Line {
  double constant = 0, slope = 0;
};

// Least squares of relative errors.
template <class Value>
[[nodiscard]] Line fitted(const std::vector<const StepFacts*>& steps, Value value) {
  double weights = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const StepFacts* facts : steps) {
    const double time = value(*facts), context = facts->asked.context, weight = 1 / (time * time);
    weights += weight;
    x += weight * context;
    y += weight * time;
    xx += weight * context * context;
    xy += weight * context * time;
  }
  const double slope = (weights * xy - x * y) / (weights * xx - x * x);
  return {(y - slope * x) / weights, slope};
}

}  // namespace

std::optional<ContextLine> context_line(std::span<const StepFacts> steps) {
  std::map<int, std::set<int>> contexts;
  for (const StepFacts& facts : steps)
    if (facts.asked.phase == Phase::decode) contexts[facts.asked.batch].insert(facts.asked.context);
  int batch = 0;
  for (const auto& [each, seen] : contexts)
    if (seen.size() >= 2 && (batch == 0 || seen.size() > contexts[batch].size())) batch = each;
  if (batch == 0) return std::nullopt;
  std::vector<const StepFacts*> line;
  for (const StepFacts& facts : steps)
    if (facts.asked.batch == batch) line.push_back(&facts);
  const Line measured = fitted(line, [](const StepFacts& facts) { return facts.asked.time.value(); });
  const Line predicted = fitted(line, [](const StepFacts& facts) { return facts.predicted.value() / facts.tokens; });
  ContextLine found{.batch = batch,
                    .constant = Seconds(measured.constant),
                    .per_token = Seconds(measured.slope),
                    .predicted_constant = Seconds(predicted.constant),
                    .predicted_per_token = Seconds(predicted.slope),
                    .kv_bandwidth = {}};
  const Line bytes = fitted(line, [](const StepFacts& facts) { return facts.attention.bytes.value(); });
  if (measured.slope > 0 && bytes.slope > 0) found.kv_bandwidth = BytesPerSecond(bytes.slope / measured.slope);
  return found;
}

}  // namespace dculab::study
