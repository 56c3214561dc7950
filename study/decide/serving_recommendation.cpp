#include "study/decide/serving_recommendation.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "model/shard.hpp"
#include "sim/calibration/floor_check.hpp"
#include "sim/study/measured_choices.hpp"
#include "study/scenario/few_heads.hpp"
#include "study/scenario/request_workload.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/served.hpp"
#include "study/validate/refused_steps.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] sim::SteadyLoad mean_load(const RequestWorkload& workload, const RecommendationQuestion& question) {
  double prompt = 0, output = 0;
  int requests = 0;
  RequestSource source(workload);
  for (auto request = source.next(); request; request = source.next(), ++requests) {
    prompt += static_cast<double>(request->prompt_token_ids.size());
    output += request->max_tokens;
  }
  return {.prompt_tokens = std::max(1, static_cast<int>(std::lround(prompt / requests))),
          .output_tokens = std::max(1, static_cast<int>(std::lround(output / requests))),
          .sequences = question.sequences,
          .tpot = question.scenario.slo.tpot};
}

void require_context(const sim::ServingCase& serving, const std::string& file) {
  const int longest = serving.load.prompt_tokens + serving.load.output_tokens;
  if (longest > serving.model.max_position_embeddings)
    throw InputError(
        file, "requests of " + std::to_string(longest) + " tokens are longer than " + serving.model.name +
                  " allows (max_position_embeddings = " + std::to_string(serving.model.max_position_embeddings) + ")");
}

[[nodiscard]] bool is_sound(const sim::ServingCase& serving, const sim::Setting& setting) {
  const ModelShape whole = with_kv_heads(serving.model, setting.kv_heads);
  if (!problems(whole).empty() || !shard_problems(whole, serving.options.weights, serving.tensor_parallel_size).empty())
    return false;
  const ModelShape model = sim::model_of(serving, setting);
  const EngineOptions options = sim::options_of(serving, setting);
  return problems(model).empty() && problems(options).empty() && problems(options, model).empty();
}

// A candidate for each value that the engine can have, in their order.
template <class Value, class Text>
[[nodiscard]] std::vector<Candidate> candidates(const sim::ServingCase& serving, const sim::Setting& base,
                                                Value sim::Setting::*field, const std::vector<Value>& values,
                                                Text text) {
  std::vector<Candidate> result;
  for (const Value& value : values) {
    Candidate candidate{text(value), base};
    candidate.setting.*field = value;
    if (is_sound(serving, candidate.setting)) result.push_back(std::move(candidate));
  }
  return result;
}

[[nodiscard]] std::string size_text(int size) { return size == 0 ? "unsplit" : std::to_string(size); }
[[nodiscard]] std::string dtype_text(Dtype dtype) { return std::string(name(dtype)); }

// Without accuracy and unless any will do: the model's own. With accuracy: those that lose no more than is tolerated,
// and the model's own.
[[nodiscard]] std::vector<int> allowed_kv_heads(const RecommendationQuestion& question, const Recommendation& result) {
  const ModelShape& model = result.serving.model;
  const auto& accuracy = question.scenario.accuracy;
  const std::vector<int> possible = model.possible_kv_heads();
  if (possible.size() == 1 || (!accuracy && !question.any_kv_heads)) return {model.heads().num_key_value_heads};
  if (!accuracy) return possible;
  return tolerated_kv_heads(*result.accuracy, model.heads().num_attention_heads, model.heads().num_key_value_heads,
                            accuracy->tolerance);
}

// The kernel's usual ones, and on a GPU what fills the device.
[[nodiscard]] std::vector<int> partitions(const StackLimits& own, const Recommendation& result) {
  std::vector<int> tokens = own.partition_tokens;
  const sim::ServingCase& serving = result.serving;
  if (serving.machine.kind != lower::DeviceKind::gpu) return tokens;
  const ModelShape model = sim::model_of(serving, result.setting);
  const int filling =
      partition_that_fills(result.served.batch, model.heads().num_attention_heads, model.heads().group_size(),
                           serving.load.prompt_tokens + serving.load.output_tokens, serving.machine.compute_units);
  if (std::ranges::find(tokens, filling) == tokens.end()) tokens.push_back(filling);
  return tokens;
}

void keep(Recommendation& result, Decision decision) {
  result.setting = decision.choice().setting;
  result.served = decision.choice().served;
  result.decisions.push_back(std::move(decision));
}

[[noreturn]] void refuse(const Recommendation& result, const Decision& decision) {
  throw InputError(result.serving.model.name + " on " + result.serving.machine.name,
                   why_none_serves(decision) + "; take weights of fewer bits, shorter requests or another machine");
}

void take(Recommendation& result, Decision decision, std::optional<int> at_a_time = {}) {
  if (!decide(result.serving, decision, at_a_time)) refuse(result, decision);
  keep(result, std::move(decision));
}

// Where memory is short, free slots of last blocks and preemptions decide: requests are served with each block size.
void take_block_size(const RecommendationQuestion& question, const RequestWorkload& workload,
                     const std::vector<Candidate>& candidates, Recommendation& result) {
  Decision decision{.what = "block size", .key = "kv_cache.block_size", .candidates = candidates};
  if (!decide(result.serving, decision, result.served.batch)) refuse(result, decision);
  const bool is_short = std::ranges::any_of(decision.candidates, [](const Candidate& candidate) {
    return candidate.served.limit == sim::SequenceLimit::memory;
  });
  if (is_short && candidates.size() > 1) {
    RequestWorkload served = workload;
    if (question.count_requests) served.requests = std::clamp(8 * result.served.batch, 64, 512);
    decide_by_requests(result.serving, question.scenario.deployment, std::move(served), result.served.batch, decision);
  }
  keep(result, std::move(decision));
}

// With the first KV dtype that serves at all: where 16 bits do not fit, fewer may.
void take_kv_heads(Recommendation& result, const std::vector<int>& heads, const std::vector<Dtype>& dtypes,
                   double speed_tie) {
  std::vector<Candidate> tried;
  const auto of = [speed_tie](std::vector<Candidate> candidates) {
    return Decision{.what = "KV heads",
                    .key = "model.num_key_value_heads",
                    .preference = {.given_up = speed_tie},
                    .candidates = std::move(candidates)};
  };
  for (const Dtype dtype : dtypes) {
    result.setting.kv_cache_dtype = dtype;
    Decision decision = of(candidates(result.serving, result.setting, &sim::Setting::kv_heads, heads, size_text));
    if (decide(result.serving, decision)) return keep(result, std::move(decision));
    tried.insert(tried.end(), decision.candidates.begin(), decision.candidates.end());
  }
  refuse(result, of(std::move(tried)));
}

void decide_all(const RecommendationQuestion& question, const RequestWorkload& workload, const StackLimits& own,
                Recommendation& result) {
  using sim::Setting;
  const sim::ServingCase& serving = result.serving;
  const std::vector<Dtype> dtypes =
      question.kv_cache_dtype ? std::vector<Dtype>{*question.kv_cache_dtype} : own.kv_dtypes;
  const std::vector<int> blocks = question.block_size ? std::vector<int>{*question.block_size} : own.block_sizes;
  const double speed_tie = question.scenario.accuracy ? question.scenario.accuracy->speed_tie : kAccuracyTie;
  const auto with = [&](auto field, const auto& values, auto text) {
    return candidates(serving, result.setting, field, values, text);
  };
  result.setting = {serving.model.heads().num_key_value_heads, dtypes.front(), blocks.front(),
                    sim::Setting{}.partition_tokens};
  if (!own.partition_tokens.empty()) result.setting.partition_tokens = own.partition_tokens.front();
  take_kv_heads(result, allowed_kv_heads(question, result), dtypes, speed_tie);
  take(result, {.what = "KV dtype",
                .key = "kv_cache.dtype",
                .preference = {.given_up = kAccuracyTie},
                .candidates = with(&Setting::kv_cache_dtype, dtypes, dtype_text)});
  take_block_size(question, workload, with(&Setting::block_size, blocks, size_text), result);
  if (!own.partition_tokens.empty())
    take(result,
         {.what = "partition",
          .key = "attention.partition_tokens",
          .candidates = with(&Setting::partition_tokens, partitions(own, result), size_text)},
         result.served.batch);
  for (Decision& decision : result.decisions) explain(serving, result.served.batch, decision);
}

// What was decided where the stack takes it, else its usual sizes.
void choose_for(const Recommendation& result, StackChoice& choice) {
  const StackLimits& limits = choice.limits;
  sim::ServingCase serving = result.serving;
  serving.machine.stack = limits.stack;
  if (const int most = limits.stack.limits.max_num_seqs; most > 0)
    serving.load.sequences = std::min(most, serving.load.sequences.value_or(most));
  sim::Setting base = result.setting;
  const auto knows = [](const auto& list, auto value) { return std::ranges::find(list, value) != list.end(); };
  const bool is_asked = limits.stack.name == result.serving.machine.stack.name;  // takes what was decided
  if (!is_asked && !knows(limits.kv_dtypes, base.kv_cache_dtype)) base.kv_cache_dtype = limits.kv_dtypes.front();
  std::vector<int> blocks = limits.block_sizes;
  if (knows(blocks, base.block_size)) blocks = {base.block_size};
  Decision decision{.candidates = candidates(serving, base, &sim::Setting::block_size, blocks, size_text)};
  if (decide(serving, decision, result.served.batch))
    choice.best = decision.choice();
  else
    choice.limits.why_not = why_none_serves(decision);
}

[[nodiscard]] std::vector<StackChoice> choose_for_stacks(const std::vector<StackLimits>& stacks,
                                                         const Recommendation& result) {
  std::vector<StackChoice> choices;
  for (const StackLimits& limits : stacks) {
    StackChoice& choice = choices.emplace_back(limits, std::nullopt);
    if (result.serving.tensor_parallel_size > 1 && limits.stack.split == sim::Split::layers)
      choice.limits.why_not = "gives each device whole layers, no part of one";
    if (choice.limits.why_not.empty()) choose_for(result, choice);
  }
  return choices;
}

void choose_limits(const RecommendationQuestion& question, RequestWorkload workload, Recommendation& result) {
  EngineOptions options = sim::options_of(result.serving, result.setting);
  options.max_num_seqs = result.served.batch;
  const int enough = std::clamp(4 * result.served.batch, 64, 512);
  if (question.count_requests) workload.requests = enough;
  result.offered_by_us = workload.arrival == ArrivalKind::all_at_once;
  if (result.offered_by_us) {
    workload.arrival = ArrivalKind::gamma;
    workload.requests_per_second = kOfferedShare * result.requests_per_second();
  }
  if (workload.arrival == ArrivalKind::gamma) result.offered_requests_per_second = workload.requests_per_second;
  const sim::SimulatedServer server{result.serving.machine,
                                    with_kv_heads(result.serving.model, result.setting.kv_heads), options, std::nullopt,
                                    question.scenario.deployment};
  if (const auto found = sim::problems(server); !found.empty()) throw InputError(question.scenario.file, found.front());
  const bool has_rate = !result.offered_by_us && result.offered_requests_per_second > 0;  // a recording has none
  const CarriedRate carried = has_rate ? CarriedRate(result.offered_requests_per_second) : CarriedRate();
  result.batched_tokens = choose_batched_tokens(server, workload, result.serving.load, question.scenario.slo, carried);
}

void judge_drafts(const config::Scenario& scenario, const SpeculativeConfig& drafted, Recommendation& result) {
  const sim::ServingCase& serving = result.serving;
  EngineOptions options = sim::options_of(serving, result.setting);
  options.speculative_config = drafted;
  options.max_num_seqs = result.served.batch;
  const auto question = draft_question(scenario, serving.machine, with_kv_heads(serving.model, result.setting.kv_heads),
                                       sim::model_of(serving, result.setting), options, serving.mean_context());
  if (question) result.drafts = judge_candidates(*question, result.served.batch);
}

// Figures of other layers than these, or of another machine, say nothing of what a choice costs here.
void require_own(const Trace& trace, const ModelShape& model, const sim::Machine& machine) {
  if (trace.header.machine != machine.name)
    throw InputError("--trace", "was measured on '" + trace.header.machine + "', and " + machine.name +
                                    " is asked about; give its own machine file, or leave --trace out");
  for (const TraceStep& step : trace.steps)
    if (!same_but_for_kv_heads(step.model, model))
      throw InputError("--trace", "was measured with " + step.model.name + ", whose layers are not those of " +
                                      model.name + "; leave --trace out");
}

// Of the steps that can be true.
[[nodiscard]] MeasuredRegret measured_regret(const sim::ServingCase& serving, const Trace& trace) {
  const sim::Machine& machine = serving.machine;
  require_own(trace, serving.model, machine);
  const std::vector<sim::FloorViolation> violations = sim::floor_violations(machine, trace.steps);
  std::vector<TraceStep> accepted;
  for (const std::size_t row : believed_rows(violations, trace.steps.size())) accepted.push_back(trace.steps[row]);
  return {sim::decision_regret(sim::measured_choices(machine, accepted)), refusal_lines(violations, trace)};
}

}  // namespace

Recommendation recommend_serving(const RecommendationQuestion& question, const std::string& machine_name) {
  const config::Scenario& scenario = question.scenario;
  Recommendation result;
  sim::ServingCase& serving = result.serving;
  refuse_groups_by_load(scenario, "a recommendation is of one number of KV heads");
  result.any_kv_heads = question.any_kv_heads;
  serving.machine = resolve_machine(scenario, machine_name);
  serving.model = resolve_model(scenario);
  const ModelShape part = resolve_part(scenario, serving.model, serving.machine);
  serving.tensor_parallel_size = part.tensor_parallel_size;
  serving.options = resolve_options(scenario, part, serving.machine);
  const SpeculativeConfig drafted = std::exchange(serving.options.speculative_config, {});
  const RequestWorkload workload = resolve_requests(scenario, serving.model);
  serving.load = mean_load(workload, question);
  if (const int most = serving.machine.stack.limits.max_num_seqs; most > 0)
    serving.load.sequences = std::min(most, serving.load.sequences.value_or(most));
  result.slo_share = scenario.slo.share;
  require_context(serving, scenario.file);
  if (scenario.accuracy) result.accuracy = measured_accuracy(scenario);
  const std::vector<StackLimits> stacks = stack_limits(part, serving.options, serving.machine);
  if (!stacks.front().why_not.empty()) throw InputError(scenario.file, stacks.front().why_not);
  decide_all(question, workload, stacks.front(), result);
  result.kv_heads = {.candidates = candidates(serving, result.setting, &sim::Setting::kv_heads,
                                              serving.model.possible_kv_heads(), size_text)};
  static_cast<void>(decide(serving, result.kv_heads));  // what is chosen serves
  const sim::DecodeStep step = sim::decode_step(serving, result.setting, result.served.batch, serving.mean_context());
  result.step = step.price.seconds;
  const ModelShape model = sim::model_of(serving, result.setting);
  const EngineOptions options = sim::options_of(serving, result.setting);
  result.confidence = sim::confidence(serving.machine, model, options, step.plan, result.step);
  result.refused = refused_kv(serving.machine, model, options);
  result.bound = bound_of(serving, result.setting, result.served.batch);
  result.stacks = choose_for_stacks(stacks, result);
  choose_limits(question, workload, result);
  judge_drafts(scenario, drafted, result);
  if (question.trace) result.measured = measured_regret(serving, *question.trace);
  return result;
}

}  // namespace dculab::study
