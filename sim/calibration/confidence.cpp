#include "sim/calibration/confidence.hpp"

#include <algorithm>
#include <cmath>

#include "core/activation_mode.hpp"
#include "sim/calibration/floor_check.hpp"
#include "sim/calibration/parameters.hpp"
#include "sim/cost/step_price.hpp"

namespace dculab::sim {
namespace {

[[nodiscard]] bool inside(const std::map<std::string, Range>& domain, const std::map<std::string, double>& sizes) {
  constexpr double kSlack = 1e-9;
  return std::all_of(domain.begin(), domain.end(), [&sizes](const auto& entry) {
    const auto& [feature, range] = entry;
    const auto found = sizes.find(feature);
    return found == sizes.end() ||
           (found->second >= range.low * (1 - kSlack) && found->second <= range.high * (1 + kSlack));
  });
}

[[nodiscard]] bool has_seen(const std::optional<SeenFormats>& seen, const StepFeatures& features) {
  return seen && seen->weights.contains(features.weights) && seen->activations.contains(features.activations) &&
         seen->kv_cache.contains(features.kv_cache) && seen->kv_retention.contains(features.kv_retention);
}

}  // namespace

std::vector<double> prior_shifts(const Machine& machine, const std::function<Seconds(const Machine&)>& time) {
  constexpr double kStep = 0.02;
  const Seconds predicted = time(machine);
  std::vector<double> shifts;
  for (const Parameter& parameter : parameters()) {
    Machine moved = machine;
    set(moved, parameter, get(machine, parameter) * std::exp(-kStep));
    const double sigma = is_known(machine, parameter) ? 0 : parameter.log_sigma;
    shifts.push_back(std::log(time(moved) / predicted) / kStep * sigma);
  }
  return shifts;
}

double prior_log_sigma(const Machine& machine, const std::function<Seconds(const Machine&)>& time) {
  double variance = kModelLogSigma * kModelLogSigma;
  for (const double shift : prior_shifts(machine, time)) variance += std::pow(shift, 2);
  return std::sqrt(variance);
}

std::string_view name(Basis basis) {
  switch (basis) {
    case Basis::measured:
      return "measured";
    case Basis::interpolated:
      return "interpolated";
    case Basis::extrapolated:
      return "extrapolated";
    case Basis::priors:
      return "priors";
  }
  return "?";
}

std::string_view explanation(Basis basis) {
  switch (basis) {
    case Basis::measured:
      return "measured";
    case Basis::interpolated:
      return "interpolated between measurements on this machine";
    case Basis::extrapolated:
      return "extrapolated beyond measurements on this machine: a wider interval";
    case Basis::priors:
      return "priors: no measurements of this stack on this machine";
  }
  return "?";
}

StepFeatures step_features(const ModelShape& model, const EngineOptions& options, const Batch& batch) {
  int longest = 0;
  for (const SequenceSlice& sequence : batch.sequences) longest = std::max(longest, sequence.context_tokens());
  const bool goes_with_mode = takes_activations(options.weights, options.activations);
  return {.sizes = {{"new_tokens", static_cast<double>(batch.num_tokens())},
                    {"context_tokens", longest},
                    {"sequences", static_cast<double>(batch.sequences.size())},
                    {"kv_heads", model.heads().num_key_value_heads},
                    {"block_size", options.block_size},
                    {"weight_bytes", weight_footprint(model, options.weights).value()}},
          .weights = options.weights.dtype,
          .activations = goes_with_mode ? options.activations : ActivationMode::exact,
          .kv_cache = options.kv_cache_dtype,
          .kv_retention = options.kv_retention.policy};
}

std::vector<StepFeatures> features_of(std::span<const TraceStep> steps) {
  std::vector<StepFeatures> features;
  for (const TraceStep& step : steps) features.push_back(step_features(step.model, step.options, step.batch));
  return features;
}

std::map<std::string, Range> calibrated_domain(std::span<const StepFeatures> features) {
  std::map<std::string, Range> domain;
  for (const StepFeatures& of_step : features)
    for (const auto& [feature, value] : of_step.sizes) {
      const auto [entry, is_new] = domain.try_emplace(feature, Range{value, value});
      entry->second.low = std::min(entry->second.low, value);
      entry->second.high = std::max(entry->second.high, value);
    }
  return domain;
}

SeenFormats calibrated_formats(std::span<const StepFeatures> features) {
  SeenFormats seen;
  for (const StepFeatures& of_step : features) {
    seen.weights.insert(of_step.weights);
    seen.activations.insert(of_step.activations);
    seen.kv_cache.insert(of_step.kv_cache);
    seen.kv_retention.insert(of_step.kv_retention);
  }
  return seen;
}

std::optional<Spread> point_spread(const Machine& machine, PriceKind kind) {
  if (!machine.calibration) return std::nullopt;
  for (const std::string_view name :
       {std::string_view(machine.stack.name), std::string_view(machine.stack.program), kAnyStack}) {
    const auto found = machine.calibration->intervals.find(std::string(name));
    if (found == machine.calibration->intervals.end()) continue;
    const PointIntervals& intervals = found->second;
    return Spread{intervals.factors.at(kind), intervals.rows > 0 ? Basis::interpolated : Basis::extrapolated};
  }
  return std::nullopt;
}

Spread spread(const Machine& machine, std::span<const StepFeatures> features,
              const std::function<Seconds(const Machine&)>& time) {
  const auto of_points = point_spread(machine, PriceKind::step);
  const auto prior_factor = [&] { return std::exp(kNormalQuantile95 * prior_log_sigma(machine, time)); };
  const bool of_own_traces = machine.calibration && machine.calibration->intervals.empty() && machine.stack.is_own();
  if (!of_points && !of_own_traces) return {prior_factor(), Basis::priors};
  const Calibration& calibration = *machine.calibration;
  if (of_points && calibration.domain.empty()) return *of_points;
  constexpr double kFew = 0.01;
  const auto outside = std::ranges::count_if(features, [&calibration](const StepFeatures& of_step) {
    return !inside(calibration.domain, of_step.sizes) || !has_seen(calibration.formats, of_step);
  });
  const double factor = of_points ? of_points->factor : calibration.interval_factor;
  if (static_cast<double>(outside) <= kFew * static_cast<double>(features.size())) return {factor, Basis::interpolated};
  return {std::min(factor * factor, std::max(factor, prior_factor())), Basis::extrapolated};
}

Confidence confidence(const Machine& machine, const ModelShape& model, const EngineOptions& options,
                      const StepPlan& plan, Seconds predicted) {
  const StepFeatures features = step_features(model, options, plan.batch);
  const auto [factor, basis] =
      spread(machine, {&features, 1}, [&plan](const Machine& moved) { return price_step(moved, plan).seconds; });
  return {std::max(predicted / factor, std::min(predicted, step_floor(machine, plan))), predicted * factor, basis};
}

}  // namespace dculab::sim
