#include "study/decide/serving_case.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::study {
namespace {

void require_context(const sim::ServingCase& serving, const std::string& file) {
  const int longest = serving.load.prompt_tokens + serving.load.output_tokens;
  if (longest > serving.model.max_position_embeddings)
    throw InputError(
        file, "requests of " + std::to_string(longest) + " tokens are longer than " + serving.model.name +
                  " allows (max_position_embeddings = " + std::to_string(serving.model.max_position_embeddings) + ")");
}

}  // namespace

RequestWorkload share_of(RequestWorkload workload, int replicas) {
  if (replicas <= 1) return workload;
  workload.requests_per_second /= replicas;
  workload.burstiness *= replicas;  // every replicas-th gap of a gamma process is the sum of so many
  if (workload.max_concurrency) workload.max_concurrency = std::max(1, *workload.max_concurrency / replicas);
  if (workload.recorded.empty()) {
    workload.requests = std::max(1, workload.requests / replicas);
    return workload;
  }
  std::vector<RecordedRequest> taken;
  const auto count = std::min(workload.recorded.size(), static_cast<std::size_t>(workload.requests));
  for (std::size_t index = 0; index < count; index += static_cast<std::size_t>(replicas))
    taken.push_back(std::move(workload.recorded[index]));
  workload.requests = static_cast<int>(taken.size());
  workload.recorded = std::move(taken);
  return workload;
}

std::optional<double> rate_of(const RequestWorkload& workload) {
  if (workload.arrival == ArrivalKind::gamma) return workload.requests_per_second;
  if (workload.arrival != ArrivalKind::replay || workload.recorded.empty()) return std::nullopt;
  const auto count = std::min(workload.recorded.size(), static_cast<std::size_t>(workload.requests));
  const Seconds span = workload.recorded[count - 1].arrival - workload.recorded.front().arrival;
  return span > Seconds() ? std::optional(static_cast<double>(count - 1) / span.value()) : std::nullopt;
}

int longest_request(const RequestWorkload& workload) {
  std::size_t longest = 0;
  RequestSource source(workload);
  for (auto request = source.next(); request; request = source.next())
    longest = std::max(longest, request->prompt_token_ids.size() + static_cast<std::size_t>(request->max_tokens));
  return static_cast<int>(longest);
}

sim::SteadyLoad mean_load(const RequestWorkload& workload, const ServiceLevel& slo, std::optional<int> sequences) {
  double prompt = 0, output = 0;
  int requests = 0;
  RequestSource source(workload);
  for (auto request = source.next(); request; request = source.next(), ++requests) {
    prompt += static_cast<double>(request->prompt_token_ids.size());
    output += request->max_tokens;
  }
  return {.prompt_tokens = std::max(1, static_cast<int>(std::lround(prompt / requests))),
          .output_tokens = std::max(1, static_cast<int>(std::lround(output / requests))),
          .sequences = sequences,
          .tpot = slo.tpot};
}

sim::ServingCase serving_case(const config::Scenario& scenario, const sim::Machine& machine, const ModelShape& model,
                              const sim::SteadyLoad& load) {
  sim::ServingCase serving{.machine = machine,
                           .model = model,
                           .options = {},
                           .load = load,
                           .devices = scenario.deployment.of(ReplicaRole::both)};
  const ModelShape part = resolve_replica_part(scenario, model, machine);
  serving.options = resolve_options(scenario, part, machine);
  if (const int most = machine.stack.limits.max_num_seqs; most > 0)
    serving.load.sequences = std::min(most, serving.load.sequences.value_or(most));
  require_context(serving, scenario.file);
  return serving;
}

bool is_sound(const sim::ServingCase& serving, const sim::Setting& setting) {
  const ModelShape whole = with_kv_heads(serving.model, setting.kv_heads);
  if (!problems(whole).empty() || !sim::problems(serving.devices, serving.machine, whole, serving.options).empty())
    return false;
  const ModelShape model = sim::model_of(serving, setting);
  const EngineOptions options = sim::options_of(serving, setting);
  return problems(model).empty() && problems(options).empty() && problems(options, model).empty();
}

EngineOptions options_with(const sim::ServingCase& serving, const sim::Setting& setting, int batch) {
  EngineOptions options = sim::options_of(serving, setting);
  options.max_num_seqs = batch;
  return options;
}

}  // namespace dculab::study
