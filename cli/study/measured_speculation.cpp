#include "cli/study/measured_speculation.hpp"

#include "config/unit_text.hpp"
#include "present/study/held_out_report.hpp"
#include "present/study/speculation_report.hpp"
#include "present/values/machine_figures.hpp"
#include "study/measure/engine_weights.hpp"
#include "study/measure/measured_drafts.hpp"
#include "study/measure/measured_sweep.hpp"
#include "study/scenario/axis_title.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

[[nodiscard]] study::DraftPair make_models(const config::Scenario& scenario, const study::DraftQuestion& question) {
  return {.target = study::load_or_make_weights(study::find_model(scenario.model.name), question.options.weights),
          .draft = study::load_or_make_weights(study::find_model(scenario.speculation.model),
                                               question.speculation.draft_weights)};
}

[[nodiscard]] present::Table compared_table(const std::vector<study::ComparedDraft>& points) {
  present::Table table;
  table.title = "What drafts are worth: predicted from steps without drafts, and measured";
  for (const auto& [key, value] : points.front().choices) table.columns.push_back(study::axis_title(key));
  for (const char* column : {"tokens a step", "plain step", "verify", "drafting", "p/m plain", "p/m verify",
                             "p/m drafting", "predicted", "measured", "ratio", "run-to-run"})
    table.columns.emplace_back(column);
  for (const study::ComparedDraft& point : points) {
    const study::DraftedTimes& times = point.predicted.times;
    const engine::MeasuredDraft& measured = point.measured;
    std::vector<present::Cell> row;
    for (const auto& [key, value] : point.choices) row.emplace_back(value);
    row.emplace_back(present::number(measured.tokens), measured.tokens);
    for (const Seconds time : {measured.plain, measured.verify, measured.drafting})
      row.emplace_back(config::short_text(time), time.value());
    for (const double part :
         {times.plain / measured.plain, times.verify / measured.verify, times.drafting / measured.drafting})
      row.emplace_back(present::number(part), part);
    for (const double figure : {point.predicted_speed_up(), measured.speed_up, point.ratio()})
      row.emplace_back(present::number(figure), figure);
    row.emplace_back("± " + present::percent(measured.spread / measured.speed_up, 2),
                     measured.spread / measured.speed_up);
    table.rows.push_back(std::move(row));
  }
  return table;
}

[[nodiscard]] present::Json compared_draft_json(const study::ComparedDraft& point) {
  return {{"choices", present::choices_json(point.choices)},
          {"predicted", present::to_json(point.predicted)},
          {"measured",
           {{"plain_seconds", point.measured.plain.value()},
            {"verify_seconds", point.measured.verify.value()},
            {"drafting_seconds", point.measured.drafting.value()},
            {"tokens", point.measured.tokens},
            {"speed_up", point.measured.speed_up},
            {"spread", point.measured.spread}}}};
}

void add_comparison(const std::vector<study::ComparedDraft>& points, present::Report& report) {
  const study::DraftErrors errors = study::errors_of(points);
  present::Table table = compared_table(points);
  table.notes.push_back("speed-up: median |error| " + present::percent(errors.median) + ", largest " +
                        present::percent(errors.largest) + "; " + std::to_string(errors.within_10) + " of " +
                        std::to_string(errors.count) + " within 10 %");
  table.notes.emplace_back(
      "p/m: predicted over measured; verify: the step that judges a draft of each sequence; "
      "predicted: with the tokens a step that were accepted");
  report.tables.push_back(std::move(table));
  report.json["points"] = present::Json::array();
  for (const study::ComparedDraft& point : points) report.json["points"].push_back(compared_draft_json(point));
  report.json["summary"] = {{"count", errors.count},
                            {"median_abs_error", errors.median},
                            {"largest_abs_error", errors.largest},
                            {"within_10", errors.within_10}};
}

}  // namespace

MeasuredStudy measure_speculation(const config::Scenario& scenario, const sim::Machine& host, present::Report& report,
                                  ProgressBar& bar) {
  std::vector<study::DraftPoint> points = study::measurable_drafts(scenario, host);
  const study::DraftPair models = make_models(scenario, points.front().question);
  study::MeasuredDrafts drafts =
      study::measure_drafts(std::move(points), models, host, study::bench_options(scenario.measure),
                            [&bar](const std::string& label, double share) { bar.update(label, share); });
  bar.clear();
  present::add_refusals(drafts.refused, drafts.plain, report);
  report.heading.push_back(host.description);
  report.heading.push_back(std::to_string(drafts.plain.steps.size()) +
                           " steps without drafts calibrate: " + drafts.plain.header.timing);
  add_comparison(drafts.points, report);
  report.json["machine_facts"][drafts.machine.name] = present::machine_facts(drafts.machine);
  return {std::move(drafts.plain), std::move(drafts.machine)};
}

}  // namespace dculab::cli
