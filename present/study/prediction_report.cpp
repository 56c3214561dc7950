#include "present/study/prediction_report.hpp"

#include "config/unit_text.hpp"
#include "config/weight_format_text.hpp"
#include "core/activation_mode.hpp"
#include "present/output/field_csv.hpp"
#include "present/output/field_json.hpp"
#include "present/study/prediction_fields.hpp"
#include "present/study/speculation_report.hpp"
#include "present/values/expert_report.hpp"
#include "present/values/input_sensitivity_report.hpp"
#include "present/values/machine_figures.hpp"
#include "present/values/op_report.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] Table op_table(const study::Prediction& prediction) {
  Table table;
  table.columns = {"op", "count", "time", "share", "bound", "FLOP"};
  for (const sim::MemoryLevel& level : prediction.machine.memory) {
    table.columns.push_back(level.name + " bytes");
    if (&level == &prediction.machine.memory.back()) continue;
    table.columns.emplace_back("hit");
  }
  for (std::size_t index = 0; index < prediction.plan.ops.size(); ++index) {
    const Op& op = prediction.plan.ops[index];
    const sim::OpPrice& price = prediction.price.ops[index];
    const Seconds total = price.all_executions();
    Row row{op_label(op, prediction.model),
            std::to_string(op.count),
            config::short_text(total),
            percent(total / prediction.price.seconds, 2),
            std::string(sim::name(price.bound, prediction.machine)),
            number((op.flops * op.count).value())};
    for (std::size_t level = 0; level < prediction.machine.memory.size(); ++level) {
      const Bytes bytes = price.bytes[level] * op.count;
      row.emplace_back(config::short_text(bytes < Bytes(0.5) ? Bytes() : bytes));
      if (level + 1 < prediction.machine.memory.size()) row.emplace_back(percent(price.hit_rate[level], 2));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Of a step that verifies drafts those that it is expected to yield, with the time that drafting takes.
[[nodiscard]] std::string tokens_per_second(const study::Prediction& prediction) {
  if (const auto& drafts = prediction.drafts)
    return number(drafts->batch * drafts->tokens / (drafts->times.verify + drafts->times.drafting).value()) +
           " tokens/s with drafting";
  return number(static_cast<double>(prediction.plan.batch.num_tokens()) / prediction.price.seconds.value()) +
         " tokens/s";
}

// "8 KV heads (group size 4)", or what all query heads share.
[[nodiscard]] std::string heads_text(const ModelShape& model) {
  const Heads heads = model.heads();
  if (model.has_latents())
    return (model.has_compressed_entries() ? "compressed entries of " : "latents of ") +
           counted(heads.head_dim, "value") + " for " + counted(heads.num_attention_heads, "query head");
  return counted(heads.num_key_value_heads, "KV head") + " (group size " + std::to_string(heads.group_size()) + ")";
}

// What is assumed of a step of devices that share experts.
[[nodiscard]] std::string expert_parallel_text(const study::Prediction& prediction) {
  std::string text = "assumed: one micro-batch, so nothing hides " +
                     config::short_text(sim::exchange_time(prediction.price)) + " of exchange";
  if (prediction.micro_batches)
    text += "; two that overlap (deployment.micro_batches in `dculab simulate`) take " +
            config::short_text(prediction.micro_batches->seconds) + " and hide " +
            config::short_text(prediction.micro_batches->hidden);
  if (prediction.rebalancing > 1)
    text += "; moving experts, which adds " + percent(prediction.rebalancing - 1, 2) + ", is not in the step";
  return text;
}

// Without drafting, where the step verifies drafts.
[[nodiscard]] std::string energy_line(const study::Prediction& prediction) {
  return "energy: " + config::short_text(energy_per_token(prediction)) + " a token" +
         (prediction.drafts ? " that is verified, without drafting" : "") + ", " +
         config::short_text(mean_power(prediction)) + (prediction.cost.devices > 1 ? " of each device" : "");
}

[[nodiscard]] std::vector<std::string> prediction_heading(const study::Prediction& prediction) {
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
  if (prediction.cost.energy) lines.push_back(energy_line(prediction));
  if (prediction.drafts) lines.push_back(drafts_line(*prediction.drafts));
  lines.push_back("memory: weights " + config::short_text(capacity.weights) + (devices > 1 ? " on each device" : "") +
                  ", room for " + counted(capacity.max_sequences, "sequence") + " of this length (" +
                  counted(capacity.num_blocks, "KV block") + ")");
  if (prediction.model.has_experts())
    lines.push_back(compute_bound_text(prediction.machine, prediction.model, prediction.options));
  if (prediction.shares_experts) lines.push_back(expert_parallel_text(prediction));
  for (const std::string& warning : prediction.warnings) lines.push_back("warning: " + warning);
  if (const std::string figures = stack_figures_text(prediction.machine); !figures.empty())
    lines.push_back("figures of the stack: " + figures);
  if (const std::string redesign = redesign_text(prediction.machine); !redesign.empty()) lines.push_back(redesign);
  const std::string sensitivity = input_sensitivity_text(prediction.machine, prediction.input_sensitivities);
  if (!sensitivity.empty()) lines.push_back(sensitivity);
  return lines;
}

}  // namespace

Report prediction_report(const study::Prediction& prediction) {
  Report report = report_of("dculab/predict/1", prediction, prediction_heading(prediction));
  report.tables.push_back(op_table(prediction));
  return report;
}

}  // namespace dculab::present
