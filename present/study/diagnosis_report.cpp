#include "present/study/diagnosis_report.hpp"

#include <algorithm>
#include <cmath>

#include "config/unit_text.hpp"
#include "present/output/field_csv.hpp"
#include "present/study/diagnosis_fields.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::present {
namespace {

using study::CauseVerdict;
using study::Diagnosis;
using study::Explanation;
using study::StepFacts;

[[nodiscard]] std::string step_text(const StepFacts& facts) {
  return std::string(facts.asked.phase == Phase::decode ? "decode" : "prefill") + ", batch " +
         std::to_string(facts.asked.batch) + ", context " + std::to_string(facts.asked.context);
}

[[nodiscard]] std::string interval_text(const StepFacts& facts) {
  const double scale = facts.predicted / facts.prediction.price.seconds;
  return config::short_text(scale * facts.prediction.confidence.low) + " to " +
         config::short_text(scale * facts.prediction.confidence.high);
}

[[nodiscard]] std::string times_text(const StepFacts& facts) {
  return "step: physics allows " + config::short_text(facts.floor) + ", predicted " +
         config::short_text(facts.predicted) + " (90 % interval " + interval_text(facts) + "), measured " +
         config::short_text(facts.measured);
}

// "TPOT = 20 ms + 42 us per token"; a slope that changes nothing of the step is 0.
[[nodiscard]] std::string line_text(Seconds constant, Seconds per_token, const StepFacts& facts) {
  const bool is_level = facts.rounded(Seconds(std::abs(per_token.value()) * facts.asked.context)) == Seconds{};
  const Seconds shown = is_level ? Seconds{} : per_token;
  return config::short_text(constant) + (shown < Seconds{} ? " - " : " + ") +
         config::short_text(Seconds(std::abs(shown.value()))) + " for each token of context";
}

[[nodiscard]] std::string context_text(const study::ContextLine& line, const StepFacts& facts) {
  const sim::Machine& machine = facts.machine();
  std::string text = "over context: " + line_text(line.constant, line.per_token, facts) + "; predicted " +
                     line_text(line.predicted_constant, line.predicted_per_token, facts);
  if (line.kv_bandwidth)
    text += "; as KV alone the measured slope is " + config::short_text(*line.kv_bandwidth) + ", " +
            percent(*line.kv_bandwidth / machine.dram().bandwidth, 2) + " of DRAM's peak";
  return text;
}

// "; 2 of 5 steps slower than predicted, 1 faster"
[[nodiscard]] std::string other_paces_text(const Diagnosis& diagnosis) {
  const auto count = [&](study::Pace pace) {
    return std::ranges::count(diagnosis.steps, pace, [](const StepFacts& each) { return study::pace_of(each); });
  };
  const auto slower = count(study::Pace::slower), faster = count(study::Pace::faster);
  if (slower + faster <= 1) return {};
  const std::string all = " of " + std::to_string(diagnosis.steps.size()) + " steps";
  if (faster == 0) return "; " + std::to_string(slower) + all + " slower than predicted";
  if (slower == 0) return "; " + std::to_string(faster) + all + " faster than predicted";
  return "; " + std::to_string(slower) + all + " slower than predicted, " + std::to_string(faster) + " faster";
}

[[nodiscard]] std::string pace_text(const Diagnosis& diagnosis) {
  const StepFacts& facts = diagnosis.at();
  const std::string where = diagnosis.steps.size() > 1 ? step_text(facts) + ": " : "";
  if (diagnosis.pace == study::Pace::as_predicted)
    return diagnosis.steps.size() > 1 ? "as fast as it should be: every measurement is in its prediction's interval"
                                      : "as fast as it should be: the measurement is in the prediction's interval";
  if (diagnosis.pace == study::Pace::faster)
    return where + "faster than predicted" + other_paces_text(diagnosis) +
           ": the machine or the stack reaches more than its file says; dculab calibrate fits it";
  return where + number(facts.measured / facts.predicted, 2) +
         " times slower than predicted: " + config::short_text(facts.gap()) + " to explain" +
         other_paces_text(diagnosis);
}

// Of TPOT, what is no step of decode.
[[nodiscard]] std::string tpot_text(const study::ClientView& client, const StepFacts& facts) {
  const bool is_explained = client.predicted_prefill_share >= *client.prefill_share / 2;
  return "a client sees " + config::short_text(client.tpot) + " for each token, of which a step of decode alone is " +
         config::short_text(facts.asked.time) + "; prompts of other requests in the same steps " +
         (is_explained ? "explain the rest" : "explain less than half of the rest") + ": " +
         number(facts.asked.served->requests_per_second) + " requests/s x " + config::short_text(client.prefill) +
         " of prefill take " + percent(client.predicted_prefill_share, 2) + " of the time, as predicted; " +
         (is_explained ? "fewer requests for each server, fewer batched tokens or a pool of its own for prefill help"
                       : "look for preemptions, pauses and tokens that arrive in bunches");
}

// What a client waits for that is no step of decode: prompts of other requests, and its turn.
[[nodiscard]] std::vector<std::string> client_lines(const study::ClientView& client, const StepFacts& facts) {
  constexpr double kWorthTelling = 0.05, kWaits = 2;
  std::vector<std::string> lines;
  if (facts.asked.batch == 1) return lines;
  if (client.prefill_share && *client.prefill_share >= kWorthTelling) lines.push_back(tpot_text(client, facts));
  if (client.ttft && *client.ttft > kWaits * client.prefill)
    lines.push_back("the first token takes " + config::short_text(*client.ttft) + ", " +
                    number(*client.ttft / client.prefill, 2) +
                    " times the prefill of one prompt alone: requests wait for others; dculab recommend says how many "
                    "devices the load needs");
  return lines;
}

[[nodiscard]] std::string leading_text(const Diagnosis& diagnosis) {
  const Explanation& first = diagnosis.explanations.front();
  if (first.verdict > CauseVerdict::possible || diagnosis.unknown >= 0.5)
    return "none of the known causes explains it (" + percent(diagnosis.unknown, 2) + " likely)";
  return (first.verdict == CauseVerdict::likely ? "most likely: " : "first: ") + std::string(study::name(first.cause)) +
         ", " + percent(first.share, 2) + " of the gap: " + std::string(study::meaning(first.cause));
}

[[nodiscard]] std::string next_text(const study::NextMeasurement& next) {
  return "to tell " + std::string(study::name(next.first)) + " from " + std::string(study::name(next.second)) +
         ": measure TPOT at batch " + std::to_string(next.batch) + ", context " + std::to_string(next.context) + ": " +
         config::short_text(next.with_first) + " with the first alone, " + config::short_text(next.with_second) +
         " with the second";
}

[[nodiscard]] std::vector<std::string> heading_of(const Diagnosis& diagnosis) {
  const StepFacts& facts = diagnosis.at();
  const int devices = facts.prediction.model.tensor_parallel_size;
  std::vector<std::string> lines{study::whose_kernels(facts.machine())};
  lines.push_back(facts.prediction.whole.name + " on " + (devices > 1 ? std::to_string(devices) + " x " : "") +
                  facts.machine().name + ": " + step_text(facts));
  lines.push_back(times_text(facts));
  lines.push_back(pace_text(diagnosis));
  if (diagnosis.over_context) lines.push_back(context_text(*diagnosis.over_context, facts));
  if (diagnosis.client)
    for (std::string& line : client_lines(*diagnosis.client, facts)) lines.push_back(std::move(line));
  if (!diagnosis.explanations.empty()) lines.push_back(leading_text(diagnosis));
  if (diagnosis.next) lines.push_back(next_text(*diagnosis.next));
  for (const std::string& warning : diagnosis.warnings) lines.push_back("warning: " + warning);
  for (const std::string& warning : facts.prediction.warnings) lines.push_back("warning: " + warning);
  return lines;
}

[[nodiscard]] Table step_table(const Diagnosis& diagnosis) {
  Table table;
  table.title = "steps";
  table.columns = {"batch", "context", "physics allows", "predicted", "90 % interval", "measured", "slower"};
  for (const StepFacts& facts : diagnosis.steps)
    table.rows.push_back({std::to_string(facts.asked.batch), std::to_string(facts.asked.context),
                          config::short_text(facts.floor), config::short_text(facts.predicted), interval_text(facts),
                          config::short_text(facts.measured), number(facts.measured / facts.predicted, 2)});
  return table;
}

// Ops below a hundredth of the step stand together.
[[nodiscard]] Table floor_table(const StepFacts& facts) {
  Table table;
  table.title = "what physics allows";
  table.columns = {"op", "count", "physics allows", "predicted", "bound"};
  Seconds floor, predicted;
  for (const ReportedFloor& op : reported_floors(facts)) {
    if (op.predicted < 0.01 * facts.predicted) {
      floor += op.floor;
      predicted += op.predicted;
      continue;
    }
    table.rows.push_back(
        {op.op, std::to_string(op.count), config::short_text(op.floor), config::short_text(op.predicted), op.bound});
  }
  table.rows.push_back({"other ops", "", config::short_text(floor), config::short_text(predicted), ""});
  table.rows.push_back({"host", "", "", config::short_text(facts.prediction.price.host), ""});
  return table;
}

[[nodiscard]] Table cause_table(const Diagnosis& diagnosis) {
  Table table;
  table.title = "what can explain the rest";
  table.columns = {"cause", "verdict", "of the gap", "explains", "at most"};
  for (const Explanation& each : diagnosis.explanations) {
    const std::string cause(study::name(each.cause));
    table.rows.push_back({cause, std::string(study::name(each.verdict)), percent(each.share, 2),
                          config::short_text(diagnosis.at().rounded(each.explains)),
                          config::short_text(diagnosis.at().rounded(each.most))});
    if (each.verdict <= CauseVerdict::possible)
      table.notes.push_back(cause + ": " + std::string(study::meaning(each.cause)) + ". Evidence: " + each.evidence +
                            ". Try: " + each.what_to_try);
  }
  for (const Explanation& each : diagnosis.explanations)
    if (each.verdict > CauseVerdict::possible)
      table.notes.push_back(std::string(study::name(each.verdict)) + ": " + std::string(study::name(each.cause)) +
                            ": " + each.evidence);
  table.notes.push_back("none of these: " + percent(diagnosis.unknown, 2) + " likely");
  return table;
}

}  // namespace

std::vector<ReportedFloor> reported_floors(const StepFacts& facts) {
  std::vector<ReportedFloor> floors;
  for (const PricedOp& op : priced_ops(facts.prediction.plan, facts.prediction.price, facts.machine()))
    floors.push_back({op_label(op.op, facts.prediction.model), op.op.count, op.op.count * op.price.floor,
                      op.price.all_executions(), std::string(sim::name(op.price.bound, facts.machine()))});
  return floors;
}

Report diagnosis_report(const Diagnosis& diagnosis) {
  Report report = report_of("dculab/diagnose/1", diagnosis, heading_of(diagnosis));
  if (diagnosis.steps.size() > 1) report.tables.push_back(step_table(diagnosis));
  if (!diagnosis.explanations.empty()) report.tables.push_back(cause_table(diagnosis));
  report.tables.push_back(floor_table(diagnosis.at()));
  return report;
}

}  // namespace dculab::present
