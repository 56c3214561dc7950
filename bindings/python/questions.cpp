#include "bindings/python/questions.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/keywords.hpp"
#include "config/machine_file.hpp"
#include "core/error.hpp"
#include "files/output.hpp"
#include "present/answer/answered_calibration.hpp"
#include "present/answer/answered_study.hpp"
#include "present/answer/answered_validation.hpp"
#include "present/study/diagnosis_report.hpp"
#include "present/study/disaggregated_report.hpp"
#include "present/study/prediction_report.hpp"
#include "present/study/recommend_report.hpp"
#include "present/study/simulated_scenario.hpp"
#include "present/values/shown_report.hpp"
#include "study/answer/recommendation_question.hpp"
#include "study/answer/simulated_scenario.hpp"
#include "study/benchmarks/benchmark_files.hpp"
#include "study/scenario/serving_scenario.hpp"
#include "study/scenario/step_question.hpp"

namespace nb = nanobind;

namespace dculab::python {
namespace {

void take_step(Keywords& keywords, study::StepQuestion& question) {
  keywords.take("model", question.model);
  keywords.take("machine", question.machine);
  keywords.take("stack", question.stack);
  keywords.take("phase", question.phase);
  keywords.take_count("batch", question.batch);
  keywords.take_count("context", question.context);
  keywords.take_count("block_size", question.block_size);
  keywords.take_count("kv_heads", question.kv_heads);
  keywords.take("kv_cache_dtype", question.kv_cache_dtype);
  keywords.take("weights", question.weights);
  keywords.take("activations", question.activations);
  keywords.take("set", question.set);
}

[[nodiscard]] Work read_prediction(nb::dict given) {
  Keywords keywords(std::move(given));
  study::StepQuestion question;
  take_step(keywords, question);
  keywords.refuse_others();
  return [question](const Progress&) {
    return present::prediction_report(study::predict(study::step_scenario(question)));
  };
}

[[nodiscard]] Work read_diagnosis(nb::dict given) {
  Keywords keywords(std::move(given));
  study::DiagnosisQuestion question;
  take_step(keywords, question.step);
  keywords.take_count("tensor_parallel_size", question.tensor_parallel_size);
  keywords.take("files", question.files);
  keywords.take_count("prompt_tokens", question.prompt_tokens);
  keywords.take_count("output_tokens", question.output_tokens);
  keywords.take("at", question.at);
  keywords.take("tpot", question.tpot);
  keywords.take("tokens_per_second", question.tokens_per_second);
  keywords.take("prefill_tokens_per_second", question.prefill_tokens_per_second);
  keywords.take("enforce_eager", question.enforce_eager);
  keywords.take("desc_act", question.desc_act);
  keywords.refuse_others();
  return [question](const Progress&) { return present::diagnosis_report(study::diagnose(question)); };
}

// What stands for a scenario file, or changes one.
void take_load(Keywords& keywords, study::LoadQuestion& question) {
  keywords.take("model", question.model);
  keywords.take("machine", question.machines);
  keywords.take("stack", question.stack);
  keywords.take("weights", question.weights);
  keywords.take("kv_cache_dtype", question.kv_cache_dtype);
  keywords.take_count("requests", question.requests);
  keywords.take_count("prompt_tokens", question.prompt_tokens);
  keywords.take_count("output_tokens", question.output_tokens);
  keywords.take("requests_per_second", question.requests_per_second);
  keywords.take("dataset_path", question.dataset_path);
  keywords.take("ttft", question.ttft);
  keywords.take("tpot", question.tpot);
  keywords.take("set", question.set);
}

[[nodiscard]] Work read_recommendation(nb::dict given) {
  Keywords keywords(std::move(given));
  study::RecommendChoices choices;
  keywords.take("scenario", choices.scenario);
  take_load(keywords, choices);
  keywords.take_count("concurrency", choices.concurrency);
  keywords.take_count("block_size", choices.block_size);
  keywords.take_count("devices", choices.devices);
  keywords.take_count("servers", choices.servers);
  keywords.take("decode_machine", choices.decode_machine);
  keywords.take("any_kv_heads", choices.any_kv_heads);
  keywords.take("trace", choices.trace_file);
  keywords.refuse_others();
  return [choices](const Progress&) {
    const study::RecommendationQuestion question = study::recommendation_question(choices);
    if (!question.decode_machine.empty())
      return present::disaggregated_report(question, study::recommend_disaggregated(question));
    return present::recommendation_report(question, study::recommend_serving(question));
  };
}

struct SimulateChoices {
  std::vector<std::string> scenarios;
  study::LoadQuestion load;
  int threads = 0;
  bool intervals = true;
};

[[nodiscard]] present::Report simulate(const SimulateChoices& choices, const Progress& progress) {
  std::vector<config::Scenario> scenarios;  // all of them before the work
  for (const std::string& name : choices.scenarios)
    scenarios.push_back(study::read_serving_scenario(name, choices.load));
  present::SimulationReport report;
  for (config::Scenario& scenario : scenarios) {
    const study::SimulationQuestion question = study::simulation_question(std::move(scenario));
    report.add(question, study::answer_simulation(question, {.threads = choices.threads, .progress = progress},
                                                  choices.intervals ? study::SimulatedIntervals::of_single_point
                                                                    : study::SimulatedIntervals::none));
  }
  return report.take();
}

[[nodiscard]] Work read_simulation(nb::dict given) {
  Keywords keywords(std::move(given));
  SimulateChoices choices;
  keywords.take("scenario", choices.scenarios);
  take_load(keywords, choices.load);
  if (choices.scenarios.empty()) choices.scenarios.emplace_back();  // the load alone
  keywords.take_count("threads", choices.threads);
  keywords.take("intervals", choices.intervals);
  keywords.refuse_others();
  return [choices](const Progress& progress) { return simulate(choices, progress); };
}

[[nodiscard]] Work read_study(nb::dict given) {
  Keywords keywords(std::move(given));
  present::StudyQuestion question;
  keywords.take("scenario", question.scenarios);
  keywords.take("host", question.host_file);
  take_load(keywords, question.load);
  if (question.scenarios.empty()) question.scenarios.emplace_back();  // the load alone
  keywords.take_count("threads", question.search.pricing.threads);
  keywords.take("journal", question.search.pricing.journal);
  keywords.take("resume", question.search.resume);
  keywords.take("yes", question.search.yes);
  keywords.take("points", question.search.points_file);
  keywords.take("sensitivity", question.search.sensitivity);
  keywords.take("within", question.search.within);
  keywords.refuse_others();
  return [question](const Progress& progress) {
    return present::answered_study(question, {.progress = progress, .on_dropped_bytes = {}, .agrees = {}});
  };
}

// All but the files and the machine.
void take_benchmark(Keywords& keywords, study::BenchmarkQuestion& question) {
  keywords.take("model", question.model);
  keywords.take("stack", question.stack);
  keywords.take_count("batch", question.batch);
  keywords.take_count("prompt_tokens", question.prompt_tokens);
  keywords.take_count("output_tokens", question.output_tokens);
  keywords.take("set", question.set);
}

[[nodiscard]] Work read_validation(nb::dict given) {
  Keywords keywords(std::move(given));
  present::ValidationQuestion question;
  keywords.take("files", question.files);
  keywords.take("machine", question.machine);
  take_benchmark(keywords, question.benchmark);
  keywords.take("points", question.points);
  keywords.take("calibrate_on", question.calibrate_on);
  keywords.take("serving", question.serving);
  keywords.take_count("prompts", question.served.prompts);
  keywords.take("prefix_tokens", question.served.prefix_tokens);
  keywords.take("seed", question.served.seed);
  keywords.take("leave_one_out", question.leave_one_out);
  keywords.take("worst", question.worst);
  keywords.refuse_others();
  const std::vector<std::string> groups = present::left_out_choices();
  for (const std::string& group : question.leave_one_out)
    if (std::ranges::find(groups, group) == groups.end())
      throw InputError("leave_one_out", "there is no group '" + group + "'");
  return [question](const Progress&) { return present::answered_validation(question); };
}

[[nodiscard]] Work read_calibration(nb::dict given) {
  Keywords keywords(std::move(given));
  present::TraceQuestion question;
  std::vector<std::string> points;
  std::string machine_file, folder;
  study::BenchmarkQuestion benchmark;
  keywords.take("files", question.traces);
  keywords.take("machine", question.machine);
  take_benchmark(keywords, benchmark);
  keywords.take("hold_out", question.held_out.share);
  keywords.take("seed", question.held_out.seed);
  keywords.take("machine_file", machine_file);
  keywords.take("points", points);
  keywords.take("folder", folder);
  keywords.refuse_others();
  if (question.held_out.share < 0 || question.held_out.share > 0.9) throw InputError("hold_out", "is from 0 to 0.9");
  if (!points.empty() && !(question.traces.empty() && question.machine.empty() && machine_file.empty()))
    throw InputError("points", "stand alone: files, machine and machine_file are of other calibrations");
  if (!points.empty())
    return [points, folder](const Progress&) { return present::calibrated_on_points(points, folder); };
  if (study::kind_of_files(question.traces) == study::MeasuredFiles::benchmarks) {
    benchmark.files = question.traces;
    benchmark.machine = question.machine;
    return [benchmark, folder](const Progress& progress) {
      return present::calibrated_on_benchmarks(benchmark, folder, progress);
    };
  }
  study::refuse_benchmark_options(benchmark);
  question.wants_machine = !machine_file.empty();
  return [question, machine_file](const Progress& progress) {
    present::CalibratedMachine calibrated =
        present::calibrated_on_traces(question, {.progress = progress, .on_refused = {}});
    if (!machine_file.empty()) files::write_file_atomically(machine_file, config::machine_yaml(calibrated.machine));
    return std::move(calibrated.report);
  };
}

[[nodiscard]] Work read_shown(nb::dict given) {
  Keywords keywords(std::move(given));
  std::string what;
  std::vector<std::string> set;
  keywords.take("what", what);
  keywords.take("set", set);
  keywords.refuse_others();
  return [what, set](const Progress&) { return present::shown_report(study::find_shown(what, set)); };
}

constexpr std::array<Question, 10> kQuestions{{
    {"predict", read_prediction},
    {"recommend", read_recommendation},
    {"simulate", read_simulation},
    {"study", read_study},
    {"validate", read_validation},
    {"calibrate", read_calibration},
    {"diagnose", read_diagnosis},
    {"show", read_shown},
    {"tables-intensity", read_intensity},
    {"tables-footprint", read_footprint},
}};

}  // namespace

const Question& find_question(std::string_view command) {
  const auto* found = std::ranges::find(kQuestions, command, [](const Question& each) { return each.command; });
  if (found == kQuestions.end()) throw InputError("question", "there is none of " + std::string(command));
  return *found;
}

}  // namespace dculab::python
