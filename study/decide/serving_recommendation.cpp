#include "study/decide/serving_recommendation.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "study/decide/largest_rate.hpp"
#include "study/decide/offered_fleet.hpp"
#include "study/decide/serving_case.hpp"
#include "study/scenario/few_heads.hpp"
#include "study/scenario/format_warnings.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/request_workload.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/served.hpp"

namespace dculab::study {
namespace {

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
  throw InputError(
      result.serving.model.name + " on " + result.serving.machine.name,
      why_none_serves(decision) + "; take --devices N, weights of fewer bits, shorter requests or another machine");
}

void take(Recommendation& result, Decision decision, std::optional<int> at_a_time = {}) {
  if (!decide(result.serving, decision, at_a_time)) refuse(result, decision);
  keep(result, std::move(decision));
}

[[nodiscard]] sim::Deployment of_one_replica(sim::Deployment deployment) {
  deployment.data_parallel_size = 1;
  return deployment;
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
    decide_by_requests(result.serving, of_one_replica(question.scenario.deployment), std::move(served),
                       result.served.batch, decision);
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
    StackChoice& choice = choices.emplace_back(StackChoice{limits, std::nullopt});
    if (result.serving.devices.devices() > 1 && limits.stack.split == sim::Split::layers)
      choice.limits.why_not = "gives each device whole layers, no part of one";
    if (choice.limits.why_not.empty()) choose_for(result, choice);
  }
  return choices;
}

void choose_limits(const RecommendationQuestion& question, const RequestWorkload& all, Recommendation& result) {
  const ServiceLevel& slo = question.scenario.slo;
  RequestWorkload workload = part_of_replica(question, all, result, result.replicas, Sample::few);
  result.offered_by_us = workload.arrival == ArrivalKind::all_at_once;
  if (result.offered_by_us) {
    workload.arrival = ArrivalKind::gamma;
    workload.requests_per_second = kOfferedShare * result.requests_per_second();
  }
  if (workload.arrival == ArrivalKind::gamma) result.offered_requests_per_second = workload.requests_per_second;
  sim::SimulatedServer server{.machine = result.serving.machine,
                              .model = with_kv_heads(result.serving.model, result.setting.kv_heads),
                              .options = options_with(result.serving, result.setting, result.max_num_seqs),
                              .deployment = of_one_replica(question.scenario.deployment)};
  if (const auto found = sim::problems(server); !found.empty()) throw InputError(question.scenario.file, found.front());
  const bool has_rate = !result.offered_by_us && result.offered_requests_per_second > 0;  // a recording has none
  const CarriedRate carried = has_rate ? CarriedRate(result.offered_requests_per_second) : CarriedRate();
  result.batched_tokens = choose_batched_tokens(server, workload, result.serving.load, slo, carried);
  server.options.max_num_batched_tokens = result.tokens().max_num_batched_tokens;
  result.memory = memory_share(result.serving, result.setting, server.options, longest_request(workload));
  if (!result.fleet && !has_rate) return;
  result.expected =
      expected_service(server, part_of_replica(question, all, result, result.replicas, Sample::many), slo);
  look_for_doubt(question, server, all, result);
}

void judge_drafts(const config::Scenario& scenario, const SpeculativeConfig& drafted, Recommendation& result) {
  const sim::ServingCase& serving = result.serving;
  EngineOptions options = options_with(serving, result.setting, result.max_num_seqs);
  options.speculative_config = drafted;
  const auto question = draft_question(scenario, serving.machine, with_kv_heads(serving.model, result.setting.kv_heads),
                                       sim::model_of(serving, result.setting), options, serving.mean_context());
  if (question) result.drafts = judge_candidates(*question, result.max_num_seqs);
}

// What the offered devices are to do, as a scenario of the deployment that is chosen.
[[nodiscard]] FleetChoice take_fleet(RecommendationQuestion& question, const sim::Machine& machine,
                                     const ModelShape& model, const RequestWorkload& workload) {
  FleetChoice fleet = offered_fleet(question, machine, model, workload);
  const Layout& layout = fleet.choice();
  sim::Deployment& deployment = question.scenario.deployment;
  set_replica(layout.devices, deployment);
  deployment.data_parallel_size = layout.replicas;
  question.kv_cache_dtype = layout.setting.kv_cache_dtype;
  return fleet;
}

void settle(const RecommendationQuestion& question, const RequestWorkload& workload, Recommendation& result) {
  const config::Scenario& scenario = question.scenario;
  sim::ServingCase& serving = result.serving;
  result.replicas = scenario.deployment.data_parallel_size;
  const ModelShape part = resolve_replica_part(scenario, serving.model, serving.machine);
  const SpeculativeConfig drafted = std::exchange(serving.options.speculative_config, {});
  if (scenario.accuracy) result.accuracy = measured_accuracy(scenario);
  std::vector<StackLimits> stacks = stack_limits(part, serving.options, serving.machine);
  if (!stacks.front().why_not.empty()) throw InputError(scenario.file, stacks.front().why_not);
  stacks.front().kv_dtypes = known_kv_dtypes(stacks.front(), serving.machine);
  decide_all(question, share_of(workload, result.replicas), stacks.front(), result);
  choose_sequences(question, workload, result);
  result.kv_heads = {.candidates = candidates(serving, result.setting, &sim::Setting::kv_heads,
                                              serving.model.possible_kv_heads(), size_text)};
  static_cast<void>(decide(serving, result.kv_heads));  // what is chosen serves
  const sim::DecodeStep step = sim::decode_step(serving, result.setting, result.max_num_seqs, serving.mean_context());
  result.step = step.price.seconds * serving.devices.pipeline_parallel_size;
  const ModelShape model = sim::model_of(serving, result.setting);
  const EngineOptions options = sim::options_of(serving, result.setting);
  result.confidence = sim::confidence(serving.machine, model, options, step.plan, result.step);
  result.refused = refused_kv(serving.machine, model, options);
  std::ranges::move(format_warnings(serving.machine, options), std::back_inserter(result.refused));
  result.bound = bound_of(serving, result.setting, result.max_num_seqs);
  result.stacks = choose_for_stacks(stacks, result);
  choose_limits(question, workload, result);
  judge_drafts(scenario, drafted, result);
  if (question.trace) result.measured = measured_regret(serving, *question.trace);
}

// Lowers the largest rate, ever faster, until the level is met with the limits that were chosen. Throws InputError
// where it never is.
void settle_rate(const RecommendationQuestion& question, RequestWorkload workload, Recommendation& result) {
  constexpr int kMostTries = 8;
  const Recommendation before = result;
  double rate = result.fleet->rate;
  for (double lower = 0.02; lower < 0.02 * (1 << kMostTries); lower *= 2) {
    workload = with_rate(std::move(workload), rate);
    settle(question, workload, result);
    if (result.expected->slo_attainment.value >= question.scenario.slo.share) return;
    rate *= 1 - std::min(lower, 0.5);
    result = before;
    result.fleet->rate = rate;
  }
  throw InputError(question.scenario.file, "no rate of requests meets the slo with the limits that are chosen for it");
}

}  // namespace

Recommendation recommend_serving(const RecommendationQuestion& asked, const std::string& machine_name) {
  refuse_groups_by_load(asked.scenario, "a recommendation is of one number of KV heads");
  RecommendationQuestion question = asked;
  Recommendation result;
  const sim::Machine machine = with_offer(resolve_machine(question.scenario, machine_name), question.offer);
  const ModelShape model = resolve_model(question.scenario);
  const RequestWorkload workload = resolve_requests(question.scenario, model);
  if (question.offer) result.fleet = take_fleet(question, machine, model, workload);
  result.checkpoint = checkpoint_of(question.scenario.model.name);
  result.any_kv_heads = question.any_kv_heads;
  result.kv_dtype_asked = asked.kv_cache_dtype.has_value();
  result.slo_share = question.scenario.slo.share;
  result.serving =
      serving_case(question.scenario, machine, model, mean_load(workload, question.scenario.slo, question.sequences));
  if (result.fleet && result.fleet->is_largest_rate)
    settle_rate(question, workload, result);
  else
    settle(question, workload, result);
  return result;
}

}  // namespace dculab::study
