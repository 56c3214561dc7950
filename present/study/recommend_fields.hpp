// The fields of what `dculab recommend` answers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "fields/field_list.hpp"
#include "present/study/decision_fields.hpp"
#include "present/study/disaggregated_fields.hpp"
#include "present/study/fleet_fields.hpp"
#include "present/study/metric_text.hpp"
#include "present/study/recommend_report.hpp"
#include "present/study/serve_command.hpp"
#include "present/study/speculation_fields.hpp"
#include "present/values/input_sensitivity_report.hpp"
#include "present/values/machine_figures.hpp"
#include "study/decide/serving_recommendation.hpp"
#include "study/decide/step_choices.hpp"

namespace dculab::present {

// What other KV heads would bring.
struct ReportedHeads {
  const study::Candidate& candidate;
  bool on_front = false;
};

// The best that a stack's kernels allow.
struct StackBest {
  const study::Candidate& candidate;
};

struct ReportedRecommendation {
  const study::Recommendation& result;
  std::vector<ReportedInputSensitivity> input_sensitivity;
};

struct ReportedRecommendations {
  std::vector<Part<ReportedRecommendation>> recommendations{};
  std::string question{};
  ServiceLevel slo{};
  std::optional<ByMachine<MachineFacts>> machine_facts{};
  std::vector<std::string> conclusion{};
  std::vector<Part<study::DisaggregatedRecommendation>> disaggregated{};  // in the place of recommendations
};

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ReportedHeads> {
  using Heads = present::ReportedHeads;
  static constexpr std::string_view id = "kv_heads_candidate";
  static constexpr std::string_view doc = "A number of KV heads, and what is served with it.";
  static constexpr auto fields =
      std::tuple(inlined([](const Heads& heads) { return heads.candidate; }),
                 field("front", "faster than all that keep more KV heads", &Heads::on_front));
};

template <>
struct FieldList<present::StackBest> {
  using Best = present::StackBest;
  static constexpr std::string_view id = "stack_best";
  static constexpr std::string_view doc = "The best that the kernels of a stack allow.";
  static constexpr auto fields =
      std::tuple(inlined([](const Best& best) { return best.candidate; }),
                 field("kv_cache_dtype", "format of K and V", names_up_to<Dtype::fp4>(),
                       [](const Best& best) { return name(best.candidate.setting.kv_cache_dtype); }));
};

template <>
struct FieldList<study::StackChoice> {
  using Choice = study::StackChoice;
  static constexpr std::string_view id = "stack_choice";
  static constexpr std::string_view doc = "What a serving program's kernels allow, all else as recommended.";
  static constexpr auto fields = std::tuple(
      field("kernel", "the stack's name", [](const Choice& each) { return each.limits.stack.name; }),
      field("block_sizes", "that it takes, its own first", unit::tokens,
            [](const Choice& each) { return each.limits.block_sizes; }),
      field("partition_tokens", "that it takes, the usual one first; 0: never split; empty where it is nobody's choice",
            unit::tokens, [](const Choice& each) { return each.limits.partition_tokens; }),
      field("source", "what the stack is", [](const Choice& each) { return each.limits.stack.description; }),
      field("best", "where it runs this model here",
            [](const Choice& each) {
              return when(each.best.has_value(), [&] { return present::StackBest{*each.best}; });
            }),
      field("why_not", "where it does not", [](const Choice& each) {
        return when(!each.limits.why_not.empty(), [&] { return each.limits.why_not; });
      }));
};

template <>
struct FieldList<study::Recommendation> {
  using Result = study::Recommendation;
  static constexpr std::string_view id = "recommended_settings";
  static constexpr std::string_view doc =
      "What is recommended for a model on a machine, in the order of the decisions.";

  [[nodiscard]] static double output_rate(const Result& result) {
    return result.tokens().full_requests_per_second * result.serving.load.output_tokens;
  }
  // Of each number of KV heads, the most first.
  [[nodiscard]] static std::vector<present::ReportedHeads> kv_heads(const Result& result) {
    const std::vector<bool> front = study::speed_front(result.kv_heads.evaluated);
    std::vector<present::ReportedHeads> heads;
    for (std::size_t index = 0; index < front.size(); ++index)
      heads.push_back({result.kv_heads.candidates[index], front[index]});
    return heads;
  }
  [[nodiscard]] static OrNull<sim::Regret> regret(const Result& result) {
    return or_null(result.measured ? result.measured->regret : std::nullopt);
  }
  [[nodiscard]] static int best_depth(const Result& result) {
    const std::vector<study::DraftOutcome>& drafts = result.drafts->outcomes;
    const auto best = study::best_draft(drafts);
    return best ? drafts[*best].shape.depth() : 0;
  }

  static constexpr auto fields = std::tuple(
      field("model", "its name", [](const Result& result) { return result.serving.model.name; }),
      field("tensor_parallel_size", "devices that share every layer", unit::count,
            [](const Result& result) { return result.serving.devices.tensor_parallel_size; }),
      field("pipeline_parallel_size", "stages", unit::count,
            [](const Result& result) { return result.serving.devices.pipeline_parallel_size; }),
      field("expert_parallel_size", "devices that share the routed experts; 1: none do", unit::count,
            [](const Result& result) { return result.serving.devices.experts.size; }),
      field("replicas", "of the model, all that follows is of one", unit::count, &Result::replicas),
      field("fleet", "where devices were offered", &Result::fleet),
      field("expected", "then, of a replica's requests", &Result::expected),
      field(
          "replicas_without_doubt",
          "that serve the load within the service level at the slow end of the intervals, too, where fewer were chosen",
          unit::count, &Result::replicas_without_doubt),
      field("machine", "its name", [](const Result& result) { return result.serving.machine.name; }),
      field("prompt_tokens", "of a request", unit::tokens,
            [](const Result& result) { return result.serving.load.prompt_tokens; }),
      field("output_tokens", "of a request", unit::tokens,
            [](const Result& result) { return result.serving.load.output_tokens; }),
      field("context_tokens", "of a sequence, on average while it decodes", unit::tokens,
            [](const Result& result) { return result.serving.mean_context(); }),
      field("max_num_seqs", "recommended", unit::count, [](const Result& result) { return result.max_num_seqs; }),
      field("most_num_seqs", "that fit, are fast enough, and as many as asked for", unit::count,
            [](const Result& result) { return result.served.most; }),
      field("limit", "what keeps max_num_seqs from being larger", names_up_to<sim::SequenceLimit::most>(),
            [](const Result& result) {
              return sim::name(result.max_num_seqs > result.served.batch ? sim::SequenceLimit::waits
                                                                         : result.served.limit);
            }),
      field("output_tokens_per_second", "with all that is recommended, simulated while the queue never empties",
            unit::tokens_per_second, &output_rate),
      field("closed_form_tokens_per_second", "the same in closed form, by which candidates are compared",
            unit::tokens_per_second, [](const Result& result) { return result.served.output_tokens_per_second; }),
      field("tpot_seconds", "then, of the median request",
            [](const Result& result) { return result.tokens().full_tpot; }),
      field("step_seconds", "a decode step of max_num_seqs sequences of context_tokens", &Result::step),
      field("interval_seconds", "of that step, 90 %",
            [](const Result& result) { return interval(result.confidence.low, result.confidence.high); }),
      field("basis", "what the interval rests on", names_up_to<sim::Basis::priors>(),
            [](const Result& result) { return sim::name(result.confidence.basis); }),
      field("bound", "what limits most of that step", [](const Result& result) { return result.bound.name; }),
      field("bound_flips", "where something else does",
            [](const Result& result) {
              return present::ReportedFlips{result.bound.by_batch, result.bound.by_context};
            }),
      field("vllm_options", "what vLLM is started with; empty where none of its kernels can be set so",
            [](const Result& result) { return present::vllm_options(result); }),
      field("serve_command", "what a server is started with; empty where neither vLLM nor SGLang can be set so",
            [](const Result& result) { return present::serve_command(result); }),
      field("serve_note", "what must be known beside it",
            [](const Result& result) {
              return when(!present::command_note(result).empty(), [&] { return present::command_note(result); });
            }),
      field("gpu_memory_utilization", "of a device", &Result::memory),
      field("decisions", "KV heads, KV dtype, block size, partition", &Result::decisions),
      field("kv_heads", "what other numbers of KV heads would bring, the most first", &kv_heads),
      field("kernels", "what serving programs allow", &Result::stacks),
      field("max_num_batched_tokens", "tokens of a step, at most", &Result::batched_tokens),
      field("requests_per_second", "that the simulated requests of a replica arrive at; 0: as the workload's file says",
            unit::requests_per_second, &Result::offered_requests_per_second),
      field("kv_heads_by", "what decided the number of KV heads", one_of("accuracy", "speed", "own"),
            [](const Result& result) { return result.kv_heads_by(); }),
      field("regret", "null where nothing was measured, or no two choices on the same workloads", &regret),
      field("refused", "measured steps that cannot be true, and why",
            [](const Result& result) {
              return when(result.measured.has_value(), [&] { return result.measured->refused; });
            }),
      field("drafts", "where the scenario has a speculative_config",
            [](const Result& result) {
              return when(result.drafts.has_value(), [&] { return result.drafts->outcomes; });
            }),
      field("num_speculative_tokens", "then, to draft; 0: no draft pays", unit::tokens,
            [](const Result& result) { return when(result.drafts.has_value(), [&] { return best_depth(result); }); }));
};

template <>
struct FieldList<present::ReportedRecommendation> {
  using Self = present::ReportedRecommendation;
  static constexpr std::string_view id = "recommendation";
  static constexpr std::string_view doc = "What is recommended for a model on a machine.";
  static constexpr auto fields =
      std::tuple(inlined([](const Self& reported) -> const study::Recommendation& { return reported.result; }),
                 field("leans_on", "assumed figures, the most important first", &Self::input_sensitivity));
};

template <>
struct FieldList<present::ReportedRecommendations> {
  using Self = present::ReportedRecommendations;
  static constexpr std::string_view id = "recommendations";
  static constexpr std::string_view doc = "Sizes and limits that an engine should have, machine by machine.";
  static constexpr std::string_view csv_rows =
      "disaggregated[model, prefill_machine, decode_machine].pairs|"
      "recommendations[model, machine, replicas, tensor_parallel_size, pipeline_parallel_size, expert_parallel_size]"
      ".decisions[key, choice].candidates";
  static constexpr auto fields = std::tuple(
      field("recommendations", "in the order of the machines asked for; empty with a decode machine",
            &Self::recommendations),
      field("disaggregated", "then, with prefill on each of the machines asked for",
            [](const Self& each) { return unless_empty(each.disaggregated); }),
      field("question", "the scenario's", &Self::question), field("slo", "that requests are held to", &Self::slo),
      field("machine_facts", "figures of the machines, by name", &Self::machine_facts),
      field("conclusion", "the answers in sentences, each with the command line that serves so", &Self::conclusion));
};

}  // namespace dculab
