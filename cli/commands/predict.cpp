// `dculab predict`: one step on one machine, op by op.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/output_options.hpp"
#include "cli/scenario/step_choices.hpp"
#include "config/unit_text.hpp"
#include "config/weight_format_text.hpp"
#include "core/activation_mode.hpp"
#include "model/model_config.hpp"
#include "model/plan_step.hpp"
#include "present/engine/expert_report.hpp"
#include "present/study/speculation_report.hpp"
#include "present/values/leaning_report.hpp"
#include "present/values/machine_figures.hpp"
#include "present/values/op_report.hpp"
#include "sim/calibration/confidence.hpp"
#include "sim/cost/step_price.hpp"
#include "sim/memory/capacity.hpp"
#include "sim/study/recipe.hpp"
#include "study/decide/speculation_advice.hpp"
#include "study/scenario/format_warnings.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/served.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::cli {
namespace {

struct PredictChoices {
  StepChoices step;
  present::OutputOptions output;
};

// A step, its price and how far to trust it.
struct Prediction {
  ModelShape whole;  // the model
  ModelShape model;  // what each device has of it
  EngineOptions options;
  sim::Machine machine;
  StepPlan plan;
  sim::StepPrice price;
  sim::Confidence confidence;
  sim::Capacity capacity;
  std::vector<sim::Leaning> leanings;
  bool shares_experts = false;                          // over several devices
  double rebalancing = 1;                               // sim::rebalancing_factor, which no step has
  std::optional<sim::TwoMicroBatches> micro_batches{};  // then, where the step has tokens for two
  std::optional<study::DraftOutcome> drafts{};          // where the step verifies any
  sim::DraftMemory draft_memory{};
};

// What the step is worth that verifies drafts, beside one without.
void judge_drafts(const config::Scenario& scenario, Prediction& prediction) {
  const auto question = study::draft_question(scenario, prediction.machine, prediction.whole, prediction.model,
                                              prediction.options, scenario.workload.context_tokens);
  if (!question || scenario.workload.phase != Phase::decode) return;
  prediction.drafts = study::judge(*question, prediction.options.speculative_config.shape, scenario.workload.batch);
  prediction.draft_memory = study::draft_memory(*question);
}

[[nodiscard]] Prediction predict(const StepChoices& choices) {
  const config::Scenario scenario = to_scenario(choices);
  study::refuse_unsupported(scenario);
  Prediction prediction;
  prediction.machine = study::resolve_machine(scenario, scenario.machines.front());
  prediction.whole = study::resolve_model(scenario);
  prediction.model = study::resolve_part(scenario, prediction.whole, prediction.machine);
  prediction.options = study::resolve_options(scenario, prediction.model, prediction.machine);
  prediction.plan = plan_step(prediction.model, prediction.options,
                              study::resolve_batch(scenario.workload, prediction.model, prediction.options));
  judge_drafts(scenario, prediction);
  sim::price_step(prediction.machine, prediction.plan, 0, prediction.price, prediction.draft_memory.weights);
  prediction.confidence = sim::confidence(prediction.machine, prediction.model, prediction.options, prediction.plan,
                                          prediction.price.seconds);
  prediction.capacity = sim::capacity(prediction.machine, prediction.model, prediction.options,
                                      scenario.workload.context_tokens, prediction.draft_memory);
  prediction.shares_experts = scenario.deployment.shares_experts();
  prediction.rebalancing = sim::rebalancing_factor(scenario.deployment.of(ReplicaRole::both), prediction.machine,
                                                   prediction.model, prediction.options);
  if (prediction.shares_experts)
    prediction.micro_batches =
        sim::two_micro_batches(prediction.machine, prediction.model, prediction.options, prediction.plan.batch);
  prediction.leanings = sim::leanings(prediction.machine, [&prediction](const sim::Machine& machine) {
    return std::vector<Seconds>{sim::price_step(machine, prediction.plan).seconds};
  });
  return prediction;
}

[[nodiscard]] present::Table op_table(const Prediction& prediction) {
  present::Table table;
  table.columns = {"op", "count", "time", "share", "bound", "FLOP"};
  for (const sim::MemoryLevel& level : prediction.machine.memory) {
    table.columns.push_back(level.name + " bytes");
    if (&level != &prediction.machine.memory.back()) table.columns.push_back("hit");
  }
  for (std::size_t index = 0; index < prediction.plan.ops.size(); ++index) {
    const Op& op = prediction.plan.ops[index];
    const sim::OpPrice& price = prediction.price.ops[index];
    const Seconds total = price.all_executions();
    std::vector<present::Cell> row{
        present::op_label(op, prediction.model),
        std::to_string(op.count),
        present::Cell(config::short_text(total), total.value()),
        present::Cell(present::percent(total / prediction.price.seconds, 2), total / prediction.price.seconds),
        std::string(sim::name(price.bound, prediction.machine)),
        present::Cell(present::number((op.flops * op.count).value()), (op.flops * op.count).value())};
    for (std::size_t level = 0; level < prediction.machine.memory.size(); ++level) {
      const Bytes bytes = price.bytes[level] * op.count;
      row.emplace_back(config::short_text(bytes), bytes.value());
      if (level + 1 < prediction.machine.memory.size())
        row.emplace_back(present::percent(price.hit_rate[level], 2), price.hit_rate[level]);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Of a step that verifies drafts those that it is expected to yield, with the time that drafting takes.
[[nodiscard]] std::string tokens_per_second(const Prediction& prediction) {
  if (const auto& drafts = prediction.drafts)
    return present::number(drafts->batch * drafts->tokens / (drafts->times.verify + drafts->times.drafting).value()) +
           " tokens/s with drafting";
  return present::number(static_cast<double>(prediction.plan.batch.num_tokens()) / prediction.price.seconds.value()) +
         " tokens/s";
}

// "1 sequence", "2 sequences"
[[nodiscard]] std::string counted(std::int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// "8 KV heads (group size 4)", or what all query heads share.
[[nodiscard]] std::string heads_text(const ModelShape& model) {
  const Heads heads = model.heads();
  if (model.has_latents())
    return (model.has_compressed_entries() ? "compressed entries of " : "latents of ") +
           counted(heads.head_dim, "value") + " for " + counted(heads.num_attention_heads, "query head");
  return counted(heads.num_key_value_heads, "KV head") + " (group size " + std::to_string(heads.group_size()) + ")";
}

// What does not fit in the machine's memory; empty where all does.
[[nodiscard]] std::string misfit(const Prediction& prediction) {
  const sim::Capacity& room = prediction.capacity;
  if (static_cast<std::int64_t>(prediction.plan.batch.sequences.size()) <= room.max_sequences) return {};
  const std::string anyway = "; the time is what it would take if it did";
  if (room.num_blocks > 0) return "this batch does not fit in the machine's memory" + anyway;
  return prediction.whole.name + " does not fit: " + config::short_text(room.weights) +
         " of weights leave no room for a KV block in the memory of " + prediction.machine.name + anyway;
}

// All that makes the figures less than they seem.
[[nodiscard]] std::vector<std::string> warnings_of(const Prediction& prediction) {
  std::vector<std::string> warnings = prediction.whole.notes;
  if (prediction.options.speculative_config.method == SpeculativeMethod::mtp)
    std::erase_if(warnings, [](const std::string& note) { return note.starts_with(kUncountedPredictors); });
  for (std::string& what : study::format_warnings(prediction.machine, prediction.options))
    warnings.push_back(std::move(what));
  for (std::string& what : study::unserved(prediction.machine, prediction.model, prediction.options))
    warnings.push_back(std::move(what));
  for (std::string& what : study::idle_reached(prediction.machine)) warnings.push_back(std::move(what));
  if (std::string what = misfit(prediction); !what.empty()) warnings.push_back(std::move(what));
  return warnings;
}

// What is assumed of a step of devices that share experts.
[[nodiscard]] std::string expert_parallel_text(const Prediction& prediction) {
  std::string text = "assumed: one micro-batch, so nothing hides " +
                     config::short_text(sim::exchange_time(prediction.price)) + " of exchange";
  if (prediction.micro_batches)
    text += "; two that overlap (deployment.micro_batches in `dculab simulate`) take " +
            config::short_text(prediction.micro_batches->seconds) + " and hide " +
            config::short_text(prediction.micro_batches->hidden);
  if (prediction.rebalancing > 1)
    text += "; moving experts, which adds " + present::percent(prediction.rebalancing - 1, 2) + ", is not in the step";
  return text;
}

[[nodiscard]] std::vector<std::string> heading(const Prediction& prediction) {
  const ModelShape& model = prediction.whole;
  const int devices = prediction.model.tensor_parallel_size;
  const SequenceSlice& slice = prediction.plan.batch.sequences.front();
  const sim::Capacity& capacity = prediction.capacity;
  std::vector<std::string> lines;
  lines.push_back(study::whose_kernels(prediction.machine));
  lines.push_back(model.name + " on " + (devices > 1 ? std::to_string(devices) + " x " : "") + prediction.machine.name +
                  (devices > 1 ? " (tensor parallel; FLOP and bytes are one device's)" : "") + ": " +
                  (slice.phase == Phase::decode ? "decode" : "prefill") + ", batch " +
                  std::to_string(prediction.plan.batch.sequences.size()) + ", context " +
                  std::to_string(slice.context_tokens()) + ", " + heads_text(model) + ", block size " +
                  std::to_string(prediction.options.block_size) + ", weights " +
                  config::weight_format_text(prediction.options.weights) +
                  (prediction.options.activations == ActivationMode::exact ||
                           !takes_activations(prediction.options.weights, prediction.options.activations)
                       ? ""
                       : ", activations " + std::string(name(prediction.options.activations))) +
                  ", KV " + std::string(name(prediction.options.kv_cache_dtype)));
  lines.push_back("step " + config::short_text(prediction.price.seconds) + " (90 % interval " +
                  config::short_text(prediction.confidence.low) + " to " +
                  config::short_text(prediction.confidence.high) + "; " +
                  std::string(sim::explanation(prediction.confidence.basis)) + "), " + tokens_per_second(prediction) +
                  ", of it host " + config::short_text(prediction.price.host) +
                  (devices > 1 ? ", exchange " + config::short_text(sim::exchange_time(prediction.price)) : ""));
  if (prediction.drafts) lines.push_back(present::drafts_line(*prediction.drafts));
  lines.push_back("memory: weights " + config::short_text(capacity.weights) + (devices > 1 ? " on each device" : "") +
                  ", room for " + counted(capacity.max_sequences, "sequence") + " of this length (" +
                  counted(capacity.num_blocks, "KV block") + ")");
  if (prediction.model.has_experts())
    lines.push_back(present::compute_bound_text(prediction.machine, prediction.model, prediction.options));
  if (prediction.shares_experts) lines.push_back(expert_parallel_text(prediction));
  for (const std::string& warning : warnings_of(prediction)) lines.push_back("warning: " + warning);
  if (const std::string figures = present::stack_figures_text(prediction.machine); !figures.empty())
    lines.push_back("figures of the stack: " + figures);
  if (const std::string redesign = present::redesign_text(prediction.machine); !redesign.empty())
    lines.push_back(redesign);
  const std::string leaning = present::leaning_text(prediction.machine, prediction.leanings);
  if (!leaning.empty()) lines.push_back(leaning);
  return lines;
}

[[nodiscard]] present::Json to_json(const Prediction& prediction) {
  present::Json json{{"model", prediction.model.name},
                     {"machine", prediction.machine.name},
                     {"stack", prediction.machine.stack.name},
                     {"tensor_parallel_size", prediction.model.tensor_parallel_size},
                     {"stack_figures", present::figures_json(present::stack_figures(prediction.machine))},
                     {"step_seconds", prediction.price.seconds.value()},
                     {"interval_seconds", {prediction.confidence.low.value(), prediction.confidence.high.value()}},
                     {"basis", sim::name(prediction.confidence.basis)},
                     {"host_seconds", prediction.price.host.value()},
                     {"exchange_seconds", sim::exchange_time(prediction.price).value()},
                     {"max_sequences", prediction.capacity.max_sequences},
                     {"warnings", warnings_of(prediction)},
                     {"assumed", sim::assumed_keys(prediction.machine)},
                     {"leans_on", present::leaning_json(prediction.machine, prediction.leanings)},
                     {"ops", present::ops_json(prediction.plan, prediction.price, prediction.machine)}};
  if (prediction.drafts) json["speculation"] = present::to_json(*prediction.drafts);
  if (prediction.machine.redesign) json["redesign"] = present::redesign_json(prediction.machine);
  if (prediction.micro_batches)
    json["two_micro_batches"] = {{"step_seconds", prediction.micro_batches->seconds.value()},
                                 {"hidden_exchange_seconds", prediction.micro_batches->hidden.value()}};
  if (prediction.model.has_experts())
    json["compute_bound_experts"] =
        present::compute_bound_json(prediction.machine, prediction.model, prediction.options);
  json["machine_facts"][prediction.machine.name] = present::machine_facts(prediction.machine);
  return json;
}

}  // namespace

void add_predict(CLI::App& app) {
  CLI::App* command = app.add_subcommand("predict", "Price one step on one machine, op by op");
  auto choices = std::make_shared<PredictChoices>();
  add_step_choices(*command, choices->step);
  add_report_options(*command, choices->output);
  command->callback([choices] {
    const Prediction prediction = predict(choices->step);
    present::show({"dculab/predict/1", heading(prediction), {op_table(prediction)}, to_json(prediction)},
                  choices->output);
  });
}

}  // namespace dculab::cli
