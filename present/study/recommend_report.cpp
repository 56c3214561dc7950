#include "present/study/recommend_report.hpp"

#include <algorithm>
#include <utility>

#include "config/draft_shape_text.hpp"
#include "config/unit_text.hpp"
#include "present/output/field_csv.hpp"
#include "present/output/field_json.hpp"
#include "present/study/fleet_report.hpp"
#include "present/study/fleet_text.hpp"
#include "present/study/recommend_fields.hpp"
#include "present/study/recommend_tables.hpp"
#include "present/study/serve_command.hpp"
#include "present/study/speculation_report.hpp"
#include "present/values/accuracy_text.hpp"
#include "present/values/input_sensitivity_report.hpp"
#include "present/values/verdict_text.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/study/serving_setting.hpp"
#include "study/decide/attention_difference.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] std::string rate_text(const sim::Served& served) {
  return number(served.output_tokens_per_second) + " tokens/s";
}

[[nodiscard]] std::string flip_text(const std::optional<int>& at, const char* sign) {
  return at ? sign + std::to_string(*at) : "never";
}

[[nodiscard]] Row decision_row(const study::Decision& decision) {
  const study::Candidate* other = decision.runner_up();
  const char* alone = decision.candidates.size() > 1 ? "no other serves" : "no other";
  if (other == nullptr) return {decision.what, decision.choice().value, alone, "", "", "", ""};
  const study::Cost margin = decision.margin();
  return {decision.what,
          decision.choice().value,
          other->value,
          signed_percent(margin.value, 2),
          signed_percent(margin.low, 2) + " .. " + signed_percent(margin.high, 2),
          percent(std::max(decision.preference.resolution, decision.preference.given_up), 1),
          decision.difference};
}

[[nodiscard]] Row tokens_row(const study::BatchedTokensChoice& choice) {
  Row row{"max_num_batched_tokens", std::to_string(choice.candidates[choice.verdict.chosen].max_num_batched_tokens)};
  const auto& runner_up = choice.verdict.runner_up;
  if (!runner_up) return {row[0], row[1], "none", "", "", "", ""};
  const double gain = study::difference(choice.evaluated[choice.verdict.chosen], choice.evaluated[*runner_up]).value;
  row.emplace_back(std::to_string(choice.candidates[*runner_up].max_num_batched_tokens));
  row.emplace_back(signed_percent(gain, 2));
  row.insert(row.end(),
             {"", percent(study::kServedResolution, 1), choice.by_goodput ? "by goodput" : "by mean latency"});
  return row;
}

// "limit: memory, 173 at most"
[[nodiscard]] std::string limit_text(const study::Recommendation& result) {
  const sim::Served& served = result.served;
  if (result.max_num_seqs > served.batch)
    return "limit: " + std::string(sim::name(sim::SequenceLimit::waits)) + "; " + std::to_string(served.most) +
           " meet TPOT while all of them run";
  const std::string text = "limit: " + std::string(sim::name(served.limit));
  if (served.batch == served.most) return text;
  return text + ", " + std::to_string(served.most) + (served.limit == sim::SequenceLimit::gain ? " fit" : " at most");
}

// "4 x ": how many devices share the model; of a pipeline and of shared experts, how.
[[nodiscard]] std::string devices_text(const sim::ServingCase& serving) {
  const sim::ReplicaDevices& devices = serving.devices;
  if (devices.devices() == 1) return "";
  const bool plain = devices.devices() == devices.tensor_parallel_size && !devices.shares_experts();
  return std::to_string(devices.devices()) + (plain ? " x " : " (" + study::layout_text(devices) + ") x ");
}

[[nodiscard]] Table choice_table(const study::Recommendation& result) {
  const sim::ServingCase& serving = result.serving;
  Table table;
  table.title = serving.model.name + " on " + devices_text(serving) + serving.machine.name + ": " +
                std::to_string(serving.load.prompt_tokens) + " + " + std::to_string(serving.load.output_tokens) +
                " tokens a request";
  table.columns = {"setting", "choice", "runner-up", "it serves", "90 % interval", "tie", "its attention"};
  for (const study::Decision& decision : result.decisions) table.rows.push_back(decision_row(decision));
  table.rows.push_back({"max_num_seqs", std::to_string(result.max_num_seqs), "", "", "", "", limit_text(result)});
  table.rows.push_back(tokens_row(result.batched_tokens));
  return table;
}

[[nodiscard]] std::string regret_text(const study::Recommendation& result) {
  const auto& measured = result.measured;
  if (measured && measured->regret)
    return "decision regret over the measured steps, of what is predicted best among them: " +
           percent(measured->regret->regret, 2) + " (predicted best " +
           study::heads_text(measured->regret->predicted_best.kv_heads) + ", block " +
           std::to_string(measured->regret->predicted_best.block_size) + "; measured best " +
           study::heads_text(measured->regret->measured_best.kv_heads) + ", block " +
           std::to_string(measured->regret->measured_best.block_size) + ")";
  if (measured) return "decision regret: no two choices were measured on the same workloads";
  return std::string("decision regret: not measured") +
         (result.serving.machine.calibration ? "; give --trace with the steps that were measured on this machine"
                                             : ", and the machine is known from its data sheet alone");
}

// Of the median request when it serves as fast as it can.
[[nodiscard]] std::string full_tpot_text(const study::Recommendation& result) {
  const Seconds tpot = result.tokens().full_tpot;
  const std::optional<Seconds>& most = result.serving.load.tpot;
  return config::short_text(tpot) +
         (most && tpot > *most ? ", more than the slo's " + config::short_text(*most) : std::string());
}

[[nodiscard]] std::string summary(const study::Recommendation& result) {
  const double requests = result.tokens().full_requests_per_second;
  const double closed = sim::serve_with(result.serving, result.setting, result.max_num_seqs).output_tokens_per_second;
  return "→ at full load serves " + number(requests * result.serving.load.output_tokens) + " tokens/s (" +
         number(requests) + " requests/s), simulated, or " + number(closed) + " tokens/s in closed form, with " +
         counted(result.max_num_seqs, "sequence") + " at a time and a TPOT of " + full_tpot_text(result) +
         "; a decode step takes " + config::short_text(result.step) + " (90 % interval " +
         config::short_text(result.confidence.low) + " to " + config::short_text(result.confidence.high) + ", " +
         std::string(sim::name(result.confidence.basis)) + ") and is bound by " + result.bound.name;
}

// A KV cache of 16 bits a value would do too.
[[nodiscard]] bool half_serves(const study::Recommendation& result) {
  for (const study::Decision& decision : result.decisions)
    for (const study::Candidate& candidate : decision.candidates)
      if (bits(candidate.setting.kv_cache_dtype) >= 16 && candidate.served.batch > 0) return true;
  return false;
}

// A format of the KV cache that the machine's file says nothing of.
[[nodiscard]] std::string unknown_format(const study::Recommendation& result) {
  const Dtype dtype = result.setting.kv_cache_dtype;
  const sim::Machine& machine = result.serving.machine;
  if (machine.kind == lower::DeviceKind::cpu || bits(dtype) >= 16 || machine.peaks.contains(dtype)) return "";
  const std::string format(name(dtype));
  return "warning: whether " + machine.name + " computes in " + format +
         " is not known, its file has no rate for it: " +
         "values are taken to be stored so and converted before they are multiplied, by a kernel that " +
         "its build of vLLM may lack" + (half_serves(result) ? "; --kv-cache-dtype f16 does without" : "");
}

// Fewer of the simulated requests meet the service level than should.
[[nodiscard]] std::string missed_objective(const study::Recommendation& result) {
  const study::BatchedTokens& chosen = result.tokens();
  if (chosen.slo_attainment >= result.slo_share) return "";
  return "warning: of the simulated requests " + share_text(chosen.slo_attainment, result.slo_share) +
         " meet the slo, where " + percent(result.slo_share, 2) + " should; TTFT P90 is " +
         config::short_text(chosen.ttft_p90) + ", TPOT P90 " + config::short_text(chosen.tpot_p90);
}

// What cannot be told apart from the block size, and what the others cost.
[[nodiscard]] std::string block_size_line(const study::Recommendation& result) {
  for (const study::Decision& decision : result.decisions)
    if (decision.key == "kv_cache.block_size" && decision.candidates.size() > 1)
      return "→ " + result.serving.machine.name + ", " + study::heads_text(result.setting.kv_heads) + ": block size " +
             decision.choice().value + "; " + costs_text(decision.evaluated, decision.verdict) +
             (decision.by_requests ? " (memory is short: requests served with each)" : "");
  return "";
}

void add_notes(const study::Recommendation& result, const ServiceLevel& slo, Table& table) {
  for (std::string& line : load_lines(result, slo)) table.notes.push_back(std::move(line));
  if (const std::string blocks = block_size_line(result); !result.fleet && !blocks.empty())
    table.notes.push_back(blocks);
  table.notes.push_back(summary(result));
  const std::string command = serve_command(result), note = command_note(result);
  const sim::Stack& stack = result.serving.machine.stack;
  const bool has_line = stack.is_own() || stack.program == "vLLM" || stack.program == "SGLang";
  if (!command.empty()) table.notes.push_back(command);
  if (!command.empty() && !note.empty()) table.notes.push_back(note);
  if (command.empty() && has_line)
    table.notes.push_back((stack.is_own() ? std::string("vLLM") : stack.program) +
                          ": none of its kernels is known to serve this load with these sizes and this KV dtype");
  if (result.offered_requests_per_second > result.tokens().full_requests_per_second)
    table.notes.push_back("warning: " + number(result.offered_requests_per_second) +
                          " requests/s arrive, more than are served: the queue grows" +
                          (result.fleet ? "" : "; --devices N says how many devices, N in a server, serve them"));
  for (const std::string& warning : {missed_objective(result), unknown_format(result)})
    if (!warning.empty()) table.notes.push_back(warning);
  if (result.measured)
    table.notes.insert(table.notes.end(), result.measured->refused.begin(), result.measured->refused.end());
  table.notes.push_back(regret_text(result));
}

// Of a decode step of as many sequences as are served at a time.
[[nodiscard]] std::vector<sim::InputSensitivity> decode_sensitivities(const study::Recommendation& result) {
  const StepPlan plan =
      sim::decode_step(result.serving, result.setting, result.max_num_seqs, result.serving.mean_context()).plan;
  return sim::input_sensitivities(result.serving.machine, [&plan](const sim::Machine& machine) {
    return std::vector{sim::price_step(machine, plan).seconds};
  });
}

[[nodiscard]] Table flip_table(const study::Recommendation& result) {
  Table table;
  table.title = "Where a decode step alone decides otherwise than at batch " + std::to_string(result.served.batch) +
                ", context " + std::to_string(result.serving.mean_context());
  table.columns = {"setting", "between", "down to batch", "from batch", "down to context", "from context"};
  const auto add = [&table](const std::string& what, const std::string& between, const sim::Flips& batch,
                            const sim::Flips& context) {
    table.rows.push_back({what, between, flip_text(batch.below, "≤ "), flip_text(batch.above, "≥ "),
                          flip_text(context.below, "≤ "), flip_text(context.above, "≥ ")});
  };
  for (const study::Decision& decision : result.decisions) {
    if (decision.runner_up() == nullptr) continue;
    add(decision.what, decision.choice().value + " and " + decision.runner_up()->value, decision.by_batch,
        decision.by_context);
    if (!decision.step_agrees)
      table.notes.push_back(decision.what + ": here a step alone prefers " + decision.runner_up()->value +
                            "; how many sequences fit, and their prefills, decide");
  }
  const study::StepBound& bound = result.bound;
  std::string others;
  for (const std::string& other : {bound.below_batch, bound.above_batch, bound.below_context, bound.above_context})
    if (!other.empty() && others.find(other) == std::string::npos) others += (others.empty() ? "" : ", ") + other;
  add("bound of the step", bound.name + (others.empty() ? "" : " and " + others), bound.by_batch, bound.by_context);
  return table;
}

[[nodiscard]] Table kernel_table(const study::Recommendation& result) {
  Table table;
  table.title = "What the kernels of each stack allow, in closed form";
  table.columns = {"stack", "block sizes", "best", "KV dtype", "partition", "output", "against choice", "why not"};
  for (const study::StackChoice& each : result.stacks) {
    Row row{each.limits.stack.name, study::sizes_text(each.limits.block_sizes)};
    if (each.best) {
      const double gain = each.best->served.output_tokens_per_second / result.served.output_tokens_per_second - 1;
      row.insert(row.end(), {each.best->value, std::string(name(each.best->setting.kv_cache_dtype)),
                             study::sizes_text(each.limits.partition_tokens), rate_text(each.best->served),
                             signed_percent(gain, 2), ""});
    } else {
      row.insert(row.end(), {"", "", study::sizes_text(each.limits.partition_tokens), "", "", each.limits.why_not});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// The answer once more, below tables that fill a screen: the settings, what to expect, and the line to copy.
[[nodiscard]] std::vector<std::string> conclusion_of(const study::Recommendation& result, const ServiceLevel& slo) {
  std::string text = result.serving.model.name + " on " + result.serving.machine.name;
  text += result.fleet ? ", " + fleet_text(result, slo) : given_text(result, slo);
  text += ", block size " + std::to_string(result.setting.block_size) + ", " +
          counted(result.max_num_seqs, "sequence") + " at a time";
  if (result.expected) text += "; expect " + expected_text(result);
  const std::string doubt = result.expected ? doubt_text(result, slo) : "";
  if (!doubt.empty()) text += "; " + doubt;
  std::vector<std::string> sentences{text + "."};
  if (std::string command = serve_command(result); !command.empty()) sentences.push_back(std::move(command));
  return sentences;
}

void add_machine_recommendation(const study::Recommendation& result, const ServiceLevel& slo, Report& report,
                                ReportedRecommendations& reported) {
  const sim::Machine& machine = result.serving.machine;
  add_warnings(report, result.refused);
  report.tables.push_back(choice_table(result));
  add_notes(result, slo, report.tables.back());
  std::vector<ReportedInputSensitivity> input_sensitivity =
      note_input_sensitivities(machine, decode_sensitivities(result), report.tables.back());
  if (result.fleet) report.tables.push_back(fleet_table(result));
  report.tables.push_back(flip_table(result));
  report.tables.push_back(group_table(result));
  report.tables.push_back(kernel_table(result));
  report.tables.push_back(tokens_table(result));
  if (result.drafts) report.tables.push_back(drafts_table(result));
  reported.recommendations.push_back(ReportedRecommendation{result, std::move(input_sensitivity)});
  if (!reported.machine_facts) reported.machine_facts.emplace();
  set_of_machine(*reported.machine_facts, machine.name, machine_facts(machine));
}

}  // namespace

Report recommendation_report(const study::RecommendationQuestion& question,
                             const std::vector<study::Recommendation>& found) {
  const config::Scenario& scenario = question.scenario;
  ReportedRecommendations reported{.question = scenario.question, .slo = scenario.slo};
  Report report = report_of("dculab/recommend/1", reported, study::whose_kernels(scenario));
  add_warnings(report, study::model_notes(scenario));
  for (const study::Recommendation& each : found) add_machine_recommendation(each, scenario.slo, report, reported);
  if (!scenario.accuracy && !question.any_kv_heads && !question.offer) report.tables.push_back(elsewhere_table());
  for (const study::Recommendation& each : found)
    for (std::string& sentence : conclusion_of(each, scenario.slo)) reported.conclusion.push_back(std::move(sentence));
  set_answer(reported, report);
  return report;
}

}  // namespace dculab::present
