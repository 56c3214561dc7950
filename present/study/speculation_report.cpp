#include "present/study/speculation_report.hpp"

#include "config/draft_shape_text.hpp"
#include "config/unit_text.hpp"
#include "present/output/field_csv.hpp"
#include "present/study/predicted_fields.hpp"
#include "study/scenario/axis_title.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] std::string seconds_cell(Seconds time) { return config::short_text(time); }

[[nodiscard]] std::string times_cell(double factor) { return number(factor) + " x"; }

[[nodiscard]] std::string interval_cell(const study::DraftOutcome& outcome) {
  return number(outcome.low) + " .. " + number(outcome.high);
}

// Titles and values of what the advice is about, beside the batch.
[[nodiscard]] std::vector<std::string> other_titles(const std::vector<study::DraftAdvice>& advice) {
  std::vector<std::string> titles;
  for (const auto& [key, value] : advice.front().others) titles.push_back(study::axis_title(key));
  return titles;
}

[[nodiscard]] Row other_cells(const study::DraftAdvice& advice) {
  Row cells;
  for (const auto& [key, value] : advice.others) cells.emplace_back(value);
  return cells;
}

[[nodiscard]] std::string drafter_text(const study::DraftQuestion& question) {
  switch (question.options.speculative_config.method) {
    case SpeculativeMethod::draft_model:
      return question.speculation.draft->name;
    case SpeculativeMethod::mtp:
      return "its own layer for further tokens";
    case SpeculativeMethod::medusa:
      return "Medusa heads";
    default:
      return "look-up in the text before";
  }
}

[[nodiscard]] std::string drafts_title(const study::DraftQuestion& question) {
  const int devices = question.part.tensor_parallel_size;
  return question.model.name + " on " + (devices > 1 ? std::to_string(devices) + " x " : "") + question.machine.name +
         ", drafted by " + drafter_text(question) + ", context " + std::to_string(question.context);
}

}  // namespace

std::string break_even_text(const study::BreakEven& pays) {
  if (pays.batch == 0) return "pays at none";
  return std::to_string(pays.batch) + (pays.is_all ? ", all that fit" : "");
}

Table drafts_table(const std::string& title, const std::vector<StudiedDraft>& drafts) {
  Table table;
  table.title = title;
  for (const auto& [key, value] : drafts.front().choices) table.columns.push_back(study::axis_title(key));
  for (const char* column :
       {"plain step", "verifying", "drafting", "tokens a step", "speed-up", "90 % interval", "room"})
    table.columns.emplace_back(column);
  for (const StudiedDraft& draft : drafts) {
    const study::DraftOutcome& outcome = draft.outcome;
    Row& row = table.rows.emplace_back();
    for (const auto& [key, value] : draft.choices) row.emplace_back(value);
    row.push_back(seconds_cell(outcome.times.plain));
    row.push_back(seconds_cell(outcome.times.verify));
    row.push_back(seconds_cell(outcome.times.drafting));
    row.emplace_back(number(outcome.tokens));
    row.push_back(times_cell(outcome.speed_up));
    row.push_back(interval_cell(outcome));
    row.emplace_back(outcome.fits ? "yes" : "no");
  }
  table.notes.emplace_back(
      "Speed-up: tokens a step * plain step / (verifying + drafting). Tokens a step, the model's own among them, "
      "follow from the acceptance, which is given.");
  return table;
}

Table advice_table(const std::vector<study::DraftAdvice>& advice) {
  Table table;
  table.title = "How many tokens to draft";
  table.columns = other_titles(advice);
  for (const char* column : {"batch", "draft", "tokens a step", "speed-up", "90 % interval"})
    table.columns.emplace_back(column);
  for (const study::DraftAdvice& each : advice)
    for (const study::DraftAdvice::OfBatch& of_batch : each.batches) {
      Row row = other_cells(each);
      row.emplace_back(std::to_string(of_batch.batch));
      if (of_batch.best) {
        row.emplace_back(config::draft_shape_text(of_batch.best->shape));
        row.emplace_back(number(of_batch.best->tokens));
        row.push_back(times_cell(of_batch.best->speed_up));
        row.push_back(interval_cell(*of_batch.best));
      } else {
        row.insert(row.end(), {"none", "1", times_cell(1), ""});
      }
      table.rows.push_back(std::move(row));
    }
  table.notes.push_back("Of drafts whose speed-up is within " + percent(study::kAlikeSpeedUp) +
                        " of the largest, the one with the fewest tokens.");
  return table;
}

Table break_even_table(const std::vector<study::DraftAdvice>& advice) {
  Table table;
  table.title = "Up to which batch a draft pays";
  table.columns = other_titles(advice);
  for (const char* column : {"draft", "break-even batch"}) table.columns.emplace_back(column);
  for (const study::DraftAdvice& each : advice)
    for (const study::DraftAdvice::OfShape& of_shape : each.shapes) {
      Row row = other_cells(each);
      row.emplace_back(config::draft_shape_text(of_shape.shape));
      row.emplace_back(break_even_text(of_shape.break_even));
      table.rows.push_back(std::move(row));
    }
  return table;
}

Table reported_drafts_table(const std::string& title, const std::vector<study::ReportedDraft>& drafts) {
  Table table;
  table.title = title;
  table.columns = {"variant",   "draft",    "rate",      "a draft step", "closed form",
                   "predicted", "interval", "simulated", "reported"};
  for (const study::ReportedDraft& draft : drafts)
    table.rows.push_back({draft.variant, config::draft_shape_text(draft.outcome.shape), number(draft.rate),
                          percent(draft.cost), times_cell(draft.closed_form), times_cell(draft.outcome.speed_up),
                          interval_cell(draft.outcome), draft.simulated ? times_cell(*draft.simulated) : "",
                          draft.reported ? times_cell(*draft.reported) : ""});
  table.notes.emplace_back(
      "A draft step: over a plain step of the model. Closed form: (1 - a^(g+1)) / (1 - a) / (g c + 1), which takes a "
      "step that verifies to last as long as a plain one. Simulated: TPOT of served requests, without drafts over "
      "with.");
  return table;
}

std::string drafts_line(const study::DraftOutcome& outcome) {
  return "verifies drafts of " + config::draft_shape_text(outcome.shape) + ": " + number(outcome.tokens) +
         " tokens a sequence and step are expected; drafting takes " + config::short_text(outcome.times.drafting) +
         ", a step without drafts " + config::short_text(outcome.times.plain) + ": speed-up " +
         number(outcome.speed_up) + " (90 % interval " + number(outcome.low) + " to " + number(outcome.high) + ")";
}

void add_draft_studies(const std::vector<study::DraftStudy>& studies, Report& report) {
  DraftStudies reported;
  set_answer(reported, report);  // before the warnings
  for (const study::DraftStudy& study : studies) {
    const study::DraftQuestion& asked = study.points.front().question;
    add_warnings(report, study.refused);
    std::vector<StudiedDraft> studied;
    for (std::size_t index = 0; index < study.points.size(); ++index)
      studied.push_back({study.points[index].choices, study.outcomes[index]});
    report.tables.push_back(drafts_table(drafts_title(asked), studied));
    report.tables.push_back(advice_table(study.advice));
    report.tables.push_back(break_even_table(study.advice));
    reported.machines.push_back(ReportedDrafts{asked.machine.name, std::move(studied), study.advice});
  }
  set_answer(reported, report);
}

void add_reported_drafts(const config::Compare& compare, const std::vector<study::ReportedDrafts>& machines,
                         Report& report) {
  for (const std::string& assumption : compare.assumptions) report.heading.push_back("assumed: " + assumption);
  for (const study::ReportedDrafts& each : machines) {
    Table table = reported_drafts_table("Against " + compare.baseline + ", on " + each.machine, each.drafts);
    for (const config::Variant& variant : compare.variants)
      if (!variant.note.empty()) table.notes.push_back(variant.name + ": " + variant.note);
    table.notes.push_back("reported: " + compare.source);
    report.tables.push_back(std::move(table));
  }
  set_answer(ReportedDraftStudies{machines}, report);
}

}  // namespace dculab::present
