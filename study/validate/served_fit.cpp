#include "study/validate/served_fit.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace dculab::study {
namespace {

using Figures = Eigen::Vector3d;

constexpr double kRowSigma = 0.1;
constexpr double kRequestSigma = 5e-3, kFactorSigma = 0.5;  // s; of a logarithm
constexpr double kRequestStep = 2e-3, kFactorStep = 0.2;    // of the slopes

const Figures kSigmas(kRequestSigma, kFactorSigma, kFactorSigma);
const Figures kSteps(kRequestStep, kFactorStep, kFactorStep);

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
struct Errors {
  std::vector<std::string> experiments;
  std::vector<double> logs;
};

[[nodiscard]] Errors errors_at(const Figures& x, const std::vector<config::ServedFigure>& figures,
                               const ServedChoices& choices) {
  Errors errors;
  for (const ServedRow& row : runs_at(x, figures, choices).rows) {
    if (!is_fitted(row.figure)) continue;
    errors.experiments.push_back(row.figure.experiment);
    errors.logs.push_back(std::log(row.predicted / row.figure.measured));
  }
  return errors;
}

// Errors near a place.
class Linear {
 public:
  Linear(const Figures& at, const std::vector<config::ServedFigure>& figures, const ServedChoices& choices)
      : at_(at), base_(errors_at(at, figures, choices)), slopes_(base_.logs.size()) {
    for (Eigen::Index index = 0; index < at.size(); ++index) {
      Figures moved = at;
      moved[index] += kSteps[index];
      const Errors other = errors_at(moved, figures, choices);
      for (std::size_t row = 0; row < slopes_.size(); ++row)
        slopes_[row][index] = (other.logs.at(row) - base_.logs[row]) / kSteps[index];
    }
  }

  [[nodiscard]] const std::vector<std::string>& experiments() const { return base_.experiments; }

  [[nodiscard]] Figures fit(const std::string& left_out = "") const {
    Eigen::Matrix3d matrix = kSigmas.cwiseInverse().cwiseAbs2().asDiagonal();
    Figures right = Figures::Zero();
    for (std::size_t row = 0; row < slopes_.size(); ++row) {
      if (base_.experiments[row] == left_out) continue;
      const double at_zero = base_.logs[row] - slopes_[row].dot(at_);
      matrix += slopes_[row] * slopes_[row].transpose() / (kRowSigma * kRowSigma);
      right -= slopes_[row] * at_zero / (kRowSigma * kRowSigma);
    }
    const Figures free = matrix.ldlt().solve(right);
    if (free[0] >= 0) return free;
    // No request arrives before it was sent: the factors where it takes no time.
    Figures bound = Figures::Zero();
    bound.tail<2>() = matrix.bottomRightCorner<2, 2>().ldlt().solve(right.tail<2>());
    return bound;
  }

 private:
  Figures at_;
  Errors base_;
  std::vector<Figures> slopes_;
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
  const Linear first(Figures::Zero(), figures, choices);
  const Linear second(first.fit(), figures, choices);
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
  left_out.runs.unpriced = validate_served(figures, choices).unpriced;
  left_out.runs.scores = score_served(left_out.runs.rows, figures);
  left_out.runs.common = score_common(left_out.runs.rows);
  return left_out;
}

}  // namespace dculab::study
