// What published figures teach about machines and software, and how far a prediction of another figure can be trusted.
//
// Every figure of sim/calibration/parameters.hpp is the machine file's, times what is learned of four groups that a
// point belongs to (sim/calibration/crossed_effects.hpp):
//
//   all       what the priors get wrong everywhere
//   machine   what this machine adds
//   engine    what a program adds on every machine: "llama.cpp"
//   software  what a version or build of it adds: "llama.cpp HIP"
//
// and the time itself, for what the law leaves out, has a factor of machine, engine and software. So a machine that no
// point was measured on is predicted with what is known of the engine on other machines, and an engine that is new with
// what is known of the machine. Widths of the priors:
//
//   figure    its own log_sigma for all and engine (at least 0.5 for engines: how much of a peak is reached is
//             the kernels' matter), half of it for machine and software
//   time      0.1 each: an assumption
//   point     0.15, what the cost law is taken to leave out: publications do not say their spread
//
// 90 % interval: exp(+- q * sd). sd: the posterior's of log(time), groups that were not seen with their priors' width.
// q: split conformal, the 90 % quantile of |log error| / sd of points that were left out, to first order: alone where
// machine and engine were both seen, with all of their machine, or of their engine, where that was not.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "sim/calibration/confidence.hpp"
#include "sim/calibration/crossed_effects.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/study/recipe.hpp"

namespace dculab::sim {

struct PointOrigin {
  std::string machine, engine, software;
};

struct MeasuredPoint {
  PointOrigin origin;
  std::string kind;                  // points of a kind are comparable: "decode_rate"
  const Machine* machine = nullptr;  // as its file has it
  const Recipe* recipe = nullptr;
  Seconds time;
};

struct PointPrediction {
  Seconds time;
  Confidence trust;
};

class PointCalibration {
 public:
  // Precondition: at least 1 point; none is below its recipe_floor.
  explicit PointCalibration(std::span<const MeasuredPoint> points);

  // `base` with what was learned of these groups.
  [[nodiscard]] Machine machine(const Machine& base, const PointOrigin& origin) const;

  [[nodiscard]] PointPrediction predict(const Machine& base, const PointOrigin& origin, const std::string& kind,
                                        const Recipe& recipe) const;

  // By "all", "machine NAME", "engine NAME", "software NAME": the logarithms added to each of parameters(), and to the
  // time.
  [[nodiscard]] const std::map<std::string, std::vector<double>>& effects() const { return fit_->effects(); }

  // q for points whose machine and engine were seen, whose machine was not, whose engine was not.
  struct Quantiles {
    double seen = kNormalQuantile95;
    double new_machine = kNormalQuantile95;
    double new_engine = kNormalQuantile95;
  };
  [[nodiscard]] const Quantiles& quantiles() const { return quantiles_; }

 private:
  [[nodiscard]] std::vector<double> theta(const PointOrigin& origin) const;
  [[nodiscard]] double quantile(const PointOrigin& origin) const;

  std::shared_ptr<const CrossedEffects> fit_;
  std::map<std::string, Range> domain_;
  Quantiles quantiles_;
};

// 90 % interval of a machine that was not calibrated, never below the floor.
[[nodiscard]] Confidence recipe_confidence(const Machine& machine, const Recipe& recipe, Seconds predicted);

}  // namespace dculab::sim
