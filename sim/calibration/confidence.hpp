// How far a prediction can be trusted: an interval, and what it rests on.
//
// Calibrated machine: [t / f, t * f] with the conformal factor f of its held-out steps. Outside the domain they cover,
// f^2, or the priors' factor (below) where that lies between f and f^2: fitted figures are known as well as priors at
// least. The prediction says that it extrapolates: sizes beyond theirs, or a format that has kernels of its own and
// that no step had. A file that does not say which formats they had cannot tell, and extrapolates.
// Calibrated on points of others: the factor of its stack and kind of price (sim/study/point_intervals.hpp). On serving
// results: that of its stack, outside of the domain of their steps its square. Of another stack the priors hold; traces
// are of our own.
// Machine known from its file alone: 90 % of a log-normal whose variance adds up what every prior contributes,
//   sigma^2 = sigma_model^2 + sum over parameters (d log t / d log p * sigma_p)^2
// with sigma_model = 0.15 for what the cost law itself leaves out (an assumption; docs/reference/calibration.md
// compares the resulting intervals with published measurements).
// No interval reaches below the floor.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/step_plan.hpp"
#include "model/trace.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::sim {

enum class Basis : std::uint8_t {
  measured,      // this very step was among those calibrated on
  interpolated,  // calibrated, inside the domain of the traces
  extrapolated,  // calibrated, outside of it
  priors,        // no traces of this machine
};

[[nodiscard]] std::string_view name(Basis basis);
[[nodiscard]] std::string_view explanation(Basis basis);  // "priors: no traces of this machine, ..."

inline constexpr double kWidestInterval = 1e6;  // the largest factor that says anything
inline constexpr double kModelLogSigma = 0.15;
inline constexpr double kNormalQuantile95 = 1.645;  // 90 % lie between the 5 % and the 95 % quantile

// By how much each parameter's prior moves log(time), where `time` is any prediction: the derivative, times one
// standard deviation of the parameter. Of two predictions the differences say how far their ratio may be off.
[[nodiscard]] std::vector<double> prior_shifts(const Machine& machine,
                                               const std::function<Seconds(const Machine&)>& time);

// One standard deviation of log(time): what those come to, and what the cost law itself leaves out.
[[nodiscard]] double prior_log_sigma(const Machine& machine, const std::function<Seconds(const Machine&)>& time);

struct Confidence {
  Seconds low;
  Seconds high;
  Basis basis = Basis::priors;
};

// By which interpolation and extrapolation are told apart.
struct StepFeatures {
  // "new_tokens", "context_tokens" (longest), "sequences", "kv_heads", "block_size", "weight_bytes"
  std::map<std::string, double> sizes;
  Dtype weights = Dtype::f16;
  ActivationMode activations = ActivationMode::exact;  // that such weights take
  Dtype kv_cache = Dtype::f16;
  RetentionPolicy kv_retention = RetentionPolicy::all;
};

[[nodiscard]] StepFeatures step_features(const ModelShape& model, const EngineOptions& options, const Batch& batch);

[[nodiscard]] std::vector<StepFeatures> features_of(std::span<const TraceStep> steps);

// The smallest box around the sizes of steps with these features, and all formats that they have.
[[nodiscard]] std::map<std::string, Range> calibrated_domain(std::span<const StepFeatures> features);
[[nodiscard]] SeenFormats calibrated_formats(std::span<const StepFeatures> features);

// A time lies in [t / factor, t * factor], above its floor.
struct Spread {
  double factor = 1;
  Basis basis = Basis::priors;
};

// Of prices of that kind by machine.stack, where the machine was calibrated on points.
[[nodiscard]] std::optional<Spread> point_spread(const Machine& machine, PriceKind kind);

// Of `time`, that of steps with these features together: extrapolated when more than one in a hundred lies outside of
// what was calibrated on.
[[nodiscard]] Spread spread(const Machine& machine, std::span<const StepFeatures> features,
                            const std::function<Seconds(const Machine&)>& time);

// Precondition: `predicted` is what price_step gives for `plan` on `machine`.
[[nodiscard]] Confidence confidence(const Machine& machine, const ModelShape& model, const EngineOptions& options,
                                    const StepPlan& plan, Seconds predicted);

}  // namespace dculab::sim
