#include "study/benchmarks/benchmark_fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>
#include <utility>

#include "config/machine_file.hpp"
#include "config/stack_file.hpp"
#include "core/error.hpp"
#include "files/output.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/calibration/jumping_fit.hpp"
#include "sim/calibration/parameters.hpp"
#include "sim/hardware/stack_fields.hpp"
#include "sim/study/ordered_chunks.hpp"
#include "study/calibrate/trace_calibration.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::study {
namespace {

using config::BenchmarkFigure;
using config::BenchmarkMetric;

constexpr double kMeanSigma = 0.01, kTailSigma = 0.05;
constexpr Seconds kRequestSigma(5e-3);  // of host.per_request, as in study/validate/served_fit.hpp
constexpr const char* kPerRequest = "stack.host.per_request";

[[nodiscard]] bool is_tail(const BenchmarkFigure& figure) { return figure.quantile && *figure.quantile != 0.5; }

// How much a figure counts: 1 / sigma, and its share of a measurement.
struct FigureWeight {
  double inverse_sigma = 1, count = 1;
};

[[nodiscard]] std::vector<FigureWeight> weights_of(const std::vector<BenchmarkFigure>& figures) {
  const auto told = [](const BenchmarkFigure& figure) { return std::min(figure.metric, BenchmarkMetric::duration); };
  std::map<BenchmarkMetric, int> count;
  for (const BenchmarkFigure& figure : figures) ++count[told(figure)];
  std::vector<FigureWeight> weights;
  for (const BenchmarkFigure& figure : figures) {
    const double sigma = std::max(is_tail(figure) ? kTailSigma : kMeanSigma, figure.deviation / figure.value);
    weights.push_back({1 / sigma, 1.0 / count[told(figure)]});
  }
  return weights;
}

// log(predicted / measured) of the times behind the figures, case by case.
[[nodiscard]] std::vector<double> log_errors(const std::vector<BenchmarkCase>& cases, const sim::Machine& machine) {
  std::vector<double> logs;
  for (const BenchmarkCase& each : cases) {
    const std::vector<double> predicted = predicted_figures(each, machine);
    for (std::size_t index = 0; index < predicted.size(); ++index) {
      const BenchmarkFigure& figure = each.result.figures[index];
      const double ratio = std::log(predicted[index] / figure.value);
      logs.push_back(config::is_rate(figure.metric) ? -ratio : ratio);
    }
  }
  return logs;
}

// The figures of all cases as rows of a fit, on candidates: `theta` are logarithms added to each of parameters(), and
// what is added to host.per_request in units of kRequestSigma.
class BenchmarkRows {
 public:
  BenchmarkRows(const std::vector<BenchmarkCase>& cases, const sim::Machine& base, const BenchmarkProgress& progress)
      : cases_(cases), base_(base), progress_(progress) {
    for (const BenchmarkCase& each : cases)
      for (const FigureWeight& weight : weights_of(each.result.figures)) weights_.push_back(weight);
  }

  [[nodiscard]] sim::Machine candidate(const std::vector<double>& theta) const {
    sim::Machine machine = sim::with_factors(base_, std::span(theta).first(sim::parameters().size()));
    // No request arrives before it was sent.
    machine.stack.host_per_request = std::max(Seconds(), base_.stack.host_per_request + theta.back() * kRequestSigma);
    return machine;
  }

  [[nodiscard]] std::vector<double> counts() const {
    std::vector<double> counts;
    for (const FigureWeight& weight : weights_) counts.push_back(weight.count);
    return counts;
  }

  // Residuals in sigmas, at several thetas on all cores.
  [[nodiscard]] std::vector<std::vector<double>> at(const std::vector<std::vector<double>>& thetas) {
    std::vector<std::vector<double>> rows(thetas.size());
    const auto make_worker = [&]() -> sim::ChunkWorker {
      return [&](std::uint64_t index) {
        rows[index] = log_errors(cases_, candidate(thetas[index]));
        for (std::size_t row = 0; row < weights_.size(); ++row) rows[index][row] *= weights_[row].inverse_sigma;
        return std::string();
      };
    };
    const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    sim::work_in_order({0, thetas.size()}, cores, make_worker, [](std::uint64_t, const std::string&) {});
    if (progress_) progress_(1 - std::pow(0.9, ++evaluations_));
    return rows;
  }

 private:
  const std::vector<BenchmarkCase>& cases_;
  const sim::Machine& base_;
  const BenchmarkProgress& progress_;
  std::vector<FigureWeight> weights_;
  int evaluations_ = 0;
};

[[nodiscard]] sim::TimeLaw law_of(const sim::Parameter& parameter) {
  const bool is_share = std::holds_alternative<double sim::Sustained::*>(parameter.member) ||
                        std::holds_alternative<double sim::Reached::*>(parameter.member);
  return is_share ? sim::TimeLaw::inverse : sim::TimeLaw::proportional;
}

// What is believed of each theta; 0 of those on which no figure depends, and of what has no place to be kept.
[[nodiscard]] std::vector<sim::JumpingFigure> free_figures(BenchmarkRows& rows, const sim::Machine& base) {
  std::vector<sim::JumpingFigure> figures;
  for (const sim::Parameter& parameter : sim::parameters())
    figures.push_back({sim::matters(base, parameter) ? parameter.log_sigma : 0, law_of(parameter)});
  figures.push_back({base.stack.is_own() ? 0.0 : 1.0, sim::TimeLaw::added});
  std::vector<std::vector<double>> thetas(1, std::vector<double>(figures.size(), 0));
  for (std::size_t index = 0; index < figures.size(); ++index) {
    thetas.push_back(thetas.front());
    // Shares may be at 1, times at 0.
    thetas.back()[index] = index + 1 < figures.size() ? -figures[index].sigma : figures[index].sigma;
  }
  const std::vector<std::vector<double>> moved = rows.at(thetas);
  for (std::size_t index = 0; index < figures.size(); ++index)
    if (moved[index + 1] == moved.front()) figures[index].sigma = 0;
  return figures;
}

[[nodiscard]] std::string key_of(std::size_t figure) {
  return figure < sim::parameters().size() ? std::string(sim::parameters()[figure].key) : kPerRequest;
}

[[nodiscard]] std::vector<sim::FittedParameter> fitted_parameters(const sim::Machine& base, const sim::Machine& machine,
                                                                  const std::vector<sim::JumpingFigure>& figures,
                                                                  const std::vector<sim::KnownFigure>& known) {
  std::vector<sim::FittedParameter> fitted;
  for (std::size_t index = 0; index < figures.size(); ++index) {
    if (figures[index].sigma == 0) continue;
    sim::FittedParameter& each = fitted.emplace_back(sim::FittedParameter{
        .key = key_of(index), .log_sigma = known[index].deviation, .prior_log_sigma = figures[index].sigma});
    if (known[index].confounded_with) each.confounded_with = key_of(*known[index].confounded_with);
    if (index < sim::parameters().size()) {
      each.prior = sim::prior_of(base, sim::parameters()[index]);
      each.value = sim::get(machine, sim::parameters()[index]);
      each.highest = sim::parameters()[index].highest;
    } else {
      each.prior = base.stack.host_per_request.value();
      each.value = machine.stack.host_per_request.value();
      each.added_unit = kRequestSigma.value();
    }
  }
  return fitted;
}

// What the cost law leaves out elsewhere, and what the fit leaves here of means.
[[nodiscard]] double step_factor(const std::vector<BenchmarkCase>& cases, const std::vector<double>& logs) {
  double squares = 0, count = 0;
  std::size_t row = 0;
  for (const BenchmarkCase& each : cases)
    for (const BenchmarkFigure& figure : each.result.figures) {
      if (!is_tail(figure)) squares += logs[row] * logs[row], ++count;
      ++row;
    }
  const double scatter = count > 0 ? std::sqrt(squares / count) : 0;
  return std::exp(sim::kNormalQuantile95 * std::hypot(sim::kModelLogSigma, scatter));
}

// Intervals of the stack's prices on the machine: of steps those of the fit, of single kernels those of the priors.
void keep_intervals(const BenchmarkFit& fit, sim::Machine& machine) {
  if (machine.calibration && machine.calibration->intervals.empty()) return;  // those of its own traces
  if (!machine.calibration) machine.calibration.emplace();
  sim::PointIntervals& intervals = machine.calibration->intervals[fit.machine.stack.name];
  intervals.rows = std::max(1, static_cast<int>(fit.scores.size()));
  double sigma = 0;
  for (const sim::FittedParameter& parameter : fit.parameters)
    sigma = std::hypot(sigma, std::min(parameter.log_sigma, parameter.prior_log_sigma));
  const double of_kernels = std::exp(sim::kNormalQuantile95 * std::hypot(sim::kModelLogSigma, sigma));
  for (const auto& [name, kind] : sim::kPriceKinds) intervals.factors[kind] = std::max(fit.step_factor, of_kernels);
  intervals.factors[sim::PriceKind::step] = fit.step_factor;
  machine.calibration->domain = sim::calibrated_domain(fit.steps);
  machine.calibration->formats = sim::calibrated_formats(fit.steps);
}

[[nodiscard]] std::string source_text(const BenchmarkFit& fit) {
  const std::size_t results = fit.scores.size();
  return "dculab calibrate: " + std::to_string(results) + (results == 1 ? " benchmark result" : " benchmark results");
}

[[nodiscard]] sim::Machine machine_file_of(const BenchmarkFit& fit, const std::string& machine) {
  sim::Machine file = resolve_machine(machine);
  const sim::Stack own = file.stack;
  file.sustained = fit.machine.sustained;
  const Seconds step = file.overheads.host_per_step, sequence = file.overheads.host_per_sequence;
  file.overheads = fit.machine.overheads;
  if (!fit.machine.stack.is_own()) {  // its file has them
    file.overheads.host_per_step = step;
    file.overheads.host_per_sequence = sequence;
  }
  file.stack = fit.machine.stack;
  for (const sim::FittedParameter& parameter : fit.parameters) {
    const bool of_host = parameter.key == kPerRequest || parameter.key.starts_with("overheads.host_");
    if (of_host && !fit.machine.stack.is_own()) continue;
    config::cite(file, parameter.key, is_identified(parameter) ? sim::Evidence::measured : sim::Evidence::inferred,
                 source_text(fit));
  }
  keep_intervals(fit, file);
  file.stack = own;
  return file;
}

[[nodiscard]] sim::Stack stack_file_of(const BenchmarkFit& fit) {
  const auto path = try_find_stack(fit.machine.stack.name);
  sim::Stack stack = path ? config::read_stack_file(path->string()) : fit.machine.stack;
  stack.host_per_step = fit.machine.overheads.host_per_step;
  stack.host_per_sequence = fit.machine.overheads.host_per_sequence;
  stack.host_per_request = fit.machine.stack.host_per_request;
  for (const char* key : {"host.per_step", "host.per_sequence", "host.per_request"})
    stack.sources[key] = "fitted: " + source_text(fit);
  return stack;
}

}  // namespace

BenchmarkFit fit_benchmarks(const std::vector<BenchmarkCase>& cases, const BenchmarkProgress& progress) {
  BenchmarkFit fit;
  fit.before = sim::with_own_host(cases.front().server.machine);
  BenchmarkRows rows(cases, fit.before, progress);
  const std::vector<sim::JumpingFigure> figures = free_figures(rows, fit.before);
  const std::vector<sim::KnownFigure> known = sim::fit_jumping_rows(
      [&rows](const std::vector<std::vector<double>>& thetas) { return rows.at(thetas); }, figures, rows.counts());
  std::vector<double> theta;
  for (const sim::KnownFigure& each : known) theta.push_back(each.theta);
  fit.machine = rows.candidate(theta);
  fit.parameters = fitted_parameters(fit.before, fit.machine, figures, known);
  if (fit.parameters.empty()) throw InputError("nothing that can be fitted changes these figures");
  for (const double error : log_errors(cases, fit.before)) fit.errors_before.push_back(std::exp(error) - 1);
  fit.step_factor = step_factor(cases, log_errors(cases, fit.machine));
  for (const BenchmarkCase& each : cases) {
    fit.scores.push_back(score_benchmark(each, fit.machine, fit.step_factor));
    for (sim::StepFeatures& features : predicted_steps(each, fit.machine)) fit.steps.push_back(std::move(features));
  }
  return fit;
}

std::vector<std::filesystem::path> write_fit(const BenchmarkFit& fit, const std::string& machine,
                                             const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> written;
  const auto write = [&](const char* kind, const std::string& name, const std::string& text) {
    written.push_back(std::filesystem::path(kind) / (name + ".yaml"));
    std::filesystem::create_directories(folder / kind);
    files::write_file_atomically((folder / written.back()).string(), text);
  };
  const sim::Machine fitted = machine_file_of(fit, machine);
  write("hwmodels", fitted.name, config::machine_yaml(fitted));
  if (!fit.machine.stack.is_own()) write("stacks", fit.machine.stack.name, config::stack_yaml(stack_file_of(fit)));
  return written;
}

}  // namespace dculab::study
