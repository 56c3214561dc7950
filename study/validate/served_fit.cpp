#include "study/validate/served_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.hpp"
#include "sim/calibration/ridge.hpp"

namespace dculab::study {
namespace {

// per_request in s, then the logarithms of both factors.
using Figures = std::array<double, 3>;

constexpr double kRowSigma = 0.1;
constexpr Figures kPriors{5e-3, 0.5, 0.5};
constexpr Figures kSteps{2e-3, 0.2, 0.2};  // of the slopes
constexpr double kHeld = 1e-9;             // a prior that holds a figure where it is

[[nodiscard]] ServerFigures figures_at(const Figures& x) { return {Seconds(x[0]), std::exp(x[1]), std::exp(x[2])}; }

[[nodiscard]] ServedRuns runs_at(const Figures& x, const std::vector<config::ServedFigure>& figures,
                                 ServedChoices choices) {
  choices.change = [fitted = figures_at(x)](sim::Stack& stack) { fitted.apply_to(stack); };
  return validate_served(figures, choices);
}

[[nodiscard]] bool is_fitted(const config::ServedFigure& figure) {
  const bool is_mean = figure.metric == config::ServedMetric::e2e_mean ||
                       figure.metric == config::ServedMetric::itl_mean ||
                       figure.metric == config::ServedMetric::ttft_mean;
  return is_mean && figure.stage == "all";
}

// Logarithms of predicted / measured, and of which experiment each is.
struct FitErrors {
  std::vector<std::string> experiments;
  std::vector<double> logs;
};

[[nodiscard]] FitErrors errors_of(const ServedRuns& runs) {
  FitErrors errors;
  for (const ServedRow& row : runs.rows) {
    if (!is_fitted(row.figure)) continue;
    errors.experiments.push_back(row.figure.experiment);
    errors.logs.push_back(std::log(row.predicted / row.figure.measured));
  }
  return errors;
}

// Errors near a place, where the runs are `there`, and of which experiment each is.
class Linear {
 public:
  Linear(const Figures& at, const ServedRuns& there, const std::vector<config::ServedFigure>& figures,
         const ServedChoices& choices) {
    const FitErrors base = errors_of(there);
    experiments_ = base.experiments;
    for (const double error : base.logs) rows_.push_back({error, {}, kRowSigma});
    for (std::size_t index = 0; index < at.size(); ++index) {
      Figures moved = at;
      moved[index] += kSteps[index];
      const FitErrors other = errors_of(runs_at(moved, figures, choices));
      for (std::size_t row = 0; row < rows_.size(); ++row) {
        const double slope = (other.logs.at(row) - base.logs[row]) / kSteps[index];
        rows_[row].slope.push_back(slope);
        rows_[row].error -= slope * at[index];
      }
    }
  }

  [[nodiscard]] const std::vector<std::string>& experiments() const { return experiments_; }

  [[nodiscard]] Figures fit(const std::string& left_out = "") const {
    std::vector<sim::LinearRow> others;
    for (std::size_t row = 0; row < rows_.size(); ++row)
      if (experiments_[row] != left_out) others.push_back(rows_[row]);
    Figures priors = kPriors;
    std::vector<double> x = sim::ridge(others, priors);
    if (x[0] < 0) {  // no request arrives before it was sent
      priors[0] = kHeld;
      x = sim::ridge(others, priors);
    }
    return {std::max(0.0, x[0]), x[1], x[2]};
  }

 private:
  std::vector<std::string> experiments_;
  std::vector<sim::LinearRow> rows_;
};

[[nodiscard]] std::vector<std::string> distinct(const std::vector<std::string>& experiments) {
  std::vector<std::string> found;
  for (const std::string& each : experiments)
    if (std::ranges::find(found, each) == found.end()) found.push_back(each);
  return found;
}

}  // namespace

void ServerFigures::apply_to(sim::Stack& stack) const {
  stack.host_per_request += per_request;
  stack.sampler_per_step = sampler_step * stack.sampler_per_step;
  stack.sampler_per_logit = sampler_logit * stack.sampler_per_logit;
}

ServedLeftOut leave_experiments_out(const std::vector<config::ServedFigure>& figures, const ServedChoices& choices) {
  const ServedRuns as_filed = runs_at({}, figures, choices);
  const Figures near = Linear({}, as_filed, figures, choices).fit();
  const Linear second(near, runs_at(near, figures, choices), figures, choices);
  const std::vector<std::string> experiments = distinct(second.experiments());
  if (experiments.size() < 3) throw InputError("at least 3 experiments are needed to leave one out");
  ServedLeftOut left_out;
  for (const std::string& experiment : experiments) {
    const Figures x = second.fit(experiment);
    left_out.fits.push_back({experiment, figures_at(x)});
    std::vector<config::ServedFigure> own;
    std::ranges::copy_if(figures, std::back_inserter(own),
                         [&](const config::ServedFigure& figure) { return figure.experiment == experiment; });
    for (ServedRow& row : runs_at(x, own, choices).rows) left_out.runs.rows.push_back(std::move(row));
  }
  left_out.runs.unpriced = as_filed.unpriced;
  left_out.runs.scores = score_served(left_out.runs.rows, figures);
  left_out.runs.common = score_common(left_out.runs.rows);
  return left_out;
}

}  // namespace dculab::study
