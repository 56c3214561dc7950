#include "present/answer/answered_validation.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "present/study/benchmark_report.hpp"
#include "present/study/served_report.hpp"
#include "present/study/validation_report.hpp"
#include "study/benchmarks/benchmark_files.hpp"
#include "study/calibrate/measured_traces.hpp"
#include "study/validate/point_scores.hpp"

namespace dculab::present {
namespace {

constexpr const char* kExperiment = "experiment";  // left out of served runs

[[nodiscard]] study::Validation validate(const ValidationQuestion& question) {
  if (!question.points.empty()) return study::validate_points(question.points, question.calibrate_on);
  return study::validate_traces(question.files, study::machine_of_traces(question.machine, question.files));
}

[[nodiscard]] Report leave_out(const ValidationQuestion& question) {
  study::PointSet set = study::read_point_set(question.points);
  const study::Scores left_out_rows = study::left_out_points(set);
  std::vector<LeftOutGroup> groups;
  for (const std::string& by : question.leave_one_out) {
    LeftOutGroup& group = groups.emplace_back();
    group.by = by;
    group.points = study::predict_left_out(set, by, &group.effects);
  }
  return left_out_report(left_out_rows, std::move(groups));
}

[[nodiscard]] Report validate_serving(const ValidationQuestion& question) {
  const auto figures = config::read_serving_runs_file(question.serving);
  study::ServedChoices choices = question.served;
  if (!question.benchmark.stack.empty()) choices.stack = question.benchmark.stack;
  if (question.leave_one_out.empty()) return served_report(study::validate_served(figures, choices), choices);
  return served_left_out_report(study::leave_experiments_out(figures, choices), choices);
}

[[nodiscard]] study::BenchmarkQuestion benchmark_question(const ValidationQuestion& question) {
  study::BenchmarkQuestion benchmark = question.benchmark;
  benchmark.files = question.files;
  benchmark.machine = question.machine;
  return benchmark;
}

// Which groups can be left out depends on what is validated.
void check_left_out(const ValidationQuestion& question) {
  if (question.leave_one_out.empty()) return;
  const bool of_runs = std::ranges::find(question.leave_one_out, kExperiment) != question.leave_one_out.end();
  if (question.points.empty() && question.serving.empty())
    throw InputError("--leave-one-out: give --points FILE or --serving FILE");
  if (question.serving.empty() ? of_runs : !of_runs || question.leave_one_out.size() > 1)
    throw InputError("--leave-one-out: experiment needs --serving, and --serving takes no other group");
}

}  // namespace

std::vector<std::string> left_out_choices() {
  std::vector<std::string> groups = study::left_out_groups();
  groups.emplace_back(kExperiment);
  return groups;
}

Report answered_validation(const ValidationQuestion& question) {
  check_left_out(question);
  if (!question.serving.empty()) {
    study::BenchmarkQuestion others = question.benchmark;
    others.stack.clear();  // of which served runs have one too
    study::refuse_benchmark_options(others);
    return validate_serving(question);
  }
  if (!question.leave_one_out.empty()) {
    study::refuse_benchmark_options(question.benchmark);
    return leave_out(question);
  }
  const bool has_texts = !question.benchmark.texts.empty();
  if (question.points.empty() && question.files.empty() && !has_texts)
    throw InputError(
        "nothing to validate; give --points FILE, --serving FILE, or traces or results of a benchmark with --machine");
  if (has_texts ||
      (question.points.empty() && study::kind_of_files(question.files) == study::MeasuredFiles::benchmarks)) {
    if (question.worst > 0) throw InputError("--worst", "is of traces and points; leave it out");
    return benchmarks_report(study::benchmark_cases(benchmark_question(question)));
  }
  study::refuse_benchmark_options(question.benchmark);
  return validation_report(validate(question), question.worst);
}

}  // namespace dculab::present
