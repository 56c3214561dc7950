#include "present/answer/answered_calibration.hpp"

#include <filesystem>
#include <optional>

#include "core/error.hpp"
#include "files/output.hpp"
#include "present/study/benchmark_report.hpp"
#include "present/study/calibration_report.hpp"
#include "present/study/validation_report.hpp"
#include "study/benchmarks/benchmark_fit.hpp"
#include "study/calibrate/catalog.hpp"
#include "study/calibrate/measured_traces.hpp"
#include "study/validate/point_scores.hpp"
#include "study/validate/points_set.hpp"

namespace dculab::present {

CalibratedMachine calibrated_on_traces(const TraceQuestion& question, const CalibrationEvents& events) {
  if (question.traces.empty())
    throw InputError(
        "nothing to learn from; give results of a benchmark or traces with --machine, or --points FILE...");
  const sim::Machine base = study::machine_of_traces(question.machine, question.traces);
  const study::BelievedSteps believed = study::believed_steps(question.traces, base);
  if (question.wants_machine && !believed.emulated.empty())
    throw InputError("--machine-file", "the traces were recorded by a host that plays a GPU (" + believed.emulated +
                                           "), whose times mean nothing; record on hip:N or cuda:N");
  if (believed.steps.size() < sim::kFewestSteps && events.on_refused)  // which is refused
    for (const std::string& line : study::grouped_lines("refused", believed.refused)) events.on_refused(line);
  study::check_enough(believed, base);
  const std::string label = "fitting " + std::to_string(believed.steps.size()) + " steps";
  const study::TraceCalibration calibration =
      study::calibrate_on(believed.steps, base, question.held_out, [&events, &label](double share) {
        if (events.progress) events.progress(label, share);
      });
  return {calibration.fit.machine, trace_calibration_report(base.name, believed, calibration)};
}

Report calibrated_on_benchmarks(const study::BenchmarkQuestion& question, const std::string& folder,
                                const std::function<void(const std::string& label, double share)>& progress) {
  std::optional<files::NewFolder> made;
  if (!folder.empty()) made.emplace(folder);
  const std::vector<study::BenchmarkCase> cases = study::benchmark_cases(question);
  const std::string label = "fitting " + counted(std::ssize(cases), "result");
  const study::BenchmarkFit fit = study::fit_benchmarks(cases, [&](double share) {
    if (progress) progress(label, share);
  });
  std::vector<std::string> files;
  if (made) {
    for (const std::filesystem::path& file : study::write_fit(fit, question.machine, made->path()))
      files.push_back((std::filesystem::path(folder) / file).string());
    made->keep();
  }
  return benchmark_fit_report(cases, fit, folder, files);
}

Report calibrated_on_points(const std::vector<std::string>& points, const std::string& folder) {
  if (folder.empty()) throw InputError("--output: name the folder for the machine and stack files");
  files::NewFolder made(folder);
  study::PointSet set = study::read_point_set(points);
  const study::Scores left_out = study::left_out_points(set);
  const auto learned = study::learn_from(set);
  study::Catalog catalog = study::learned_catalog(learned);
  study::Runs runs(learned);
  PointsCalibration reported{.left_out = left_out,
                             .learned = *learned,
                             .errors = fitted_errors(study::summarize(study::score_points(set, set.runs, {}).rows),
                                                     study::summarize(study::score_points(set, runs, {}).rows)),
                             .intervals = {},
                             .folder = folder,
                             .files = {}};
  const std::vector<std::filesystem::path> files = catalog.write(made.path());
  made.keep();
  reported.intervals = study::learned_intervals(catalog);
  for (const std::filesystem::path& file : files)
    reported.files.push_back((std::filesystem::path(folder) / file).string());
  return points_calibration_report(reported);
}

}  // namespace dculab::present
