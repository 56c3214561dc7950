#include "sim/serving/cluster.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace dculab::sim {

std::string_view name(ReplicaRole role) {
  switch (role) {
    case ReplicaRole::both:
      return "both";
    case ReplicaRole::prefill:
      return "prefill";
    case ReplicaRole::decode:
      return "decode";
  }
  return "?";
}

Cluster::Cluster(const EngineParts& parts, ClusterCallbacks callbacks)
    : parts_(parts),
      callbacks_(std::move(callbacks)),
      arrivals_{{}, {parts.deployment.routing, parts.options.block_size}, {}},
      transfers_{{}, {parts.deployment.routing, parts.options.block_size}, {}} {
  const Deployment& deployment = parts.deployment;
  if (!deployment.is_disaggregated())
    for (int count = 0; count < deployment.data_parallel_size; ++count) add_replica(ReplicaRole::both, arrivals_);
  for (int count = 0; count < deployment.prefill_replicas; ++count) add_replica(ReplicaRole::prefill, arrivals_);
  for (int count = 0; count < deployment.decode_replicas; ++count) add_replica(ReplicaRole::decode, transfers_);
}

void Cluster::add_replica(ReplicaRole role, Pool& pool) {
  Replica& replica = replicas_.emplace_back();
  replica.role = role;
  replica.stages.resize(static_cast<std::size_t>(parts_.deployment.pipeline_parallel_size));
  for (std::size_t stage = 0; stage < replica.stages.size(); ++stage) {
    ServingCallbacks callbacks;
    if (callbacks_.on_step)
      callbacks.on_step = [this, engine = static_cast<int>(engines_.size())](const ServedStep& step) {
        callbacks_.on_step(step, engine);
      };
    callbacks.on_finished = [this, &replica](const Sequence& sequence) { finish(replica, sequence); };
    engines_.push_back(&replica.engines.emplace_back(parts_, replica.stages, std::move(callbacks)));
  }
  pool.replicas.push_back(&replica);
}

VirtualEngine* Cluster::earliest_engine() {
  VirtualEngine* earliest = nullptr;
  for (VirtualEngine* engine : engines_)
    if (engine->is_busy() && (earliest == nullptr || engine->now() < earliest->now())) earliest = engine;
  return earliest;
}

std::optional<Request> Cluster::read_next(RequestSource& source) {
  std::optional<Request> next = source.next();
  if (!next) return next;
  const Seconds sent = next->arrival;
  reader_free_ = std::max(reader_free_, sent) + parts_.machine.stack.reading_time(next->prompt_token_ids.size());
  next->arrival = reader_free_;
  next->reading = reader_free_ - sent;
  return next;
}

void Cluster::run(RequestSource& source) {
  std::optional<Request> next = read_next(source);
  while (true) {
    VirtualEngine* engine = earliest_engine();
    const bool transfer_first = !on_the_way_.empty() && (!next || on_the_way_.top().arrival <= next->arrival);
    const auto comes_first = [engine](Seconds time) { return engine == nullptr || time <= engine->now(); };
    if (transfer_first && comes_first(on_the_way_.top().arrival)) {
      const Seconds time = on_the_way_.top().arrival;
      Request request = on_the_way_.top().request;
      on_the_way_.pop();
      submit(transfers_, std::move(request), time);
    } else if (!transfer_first && next && comes_first(next->arrival)) {
      route_arrival(*std::move(next));
      next = read_next(source);
    } else if (engine != nullptr) {
      engine->step();
    } else {
      return;
    }
  }
}

void Cluster::route_arrival(Request request) {
  const auto refuse = [&request](const VirtualEngine& engine) {
    if (const auto reason = engine.refusal(request))
      throw InputError("request " + std::to_string(request.id + 1) + ": " + *reason);
  };
  refuse(*engines_.back());  // who decodes: all have as many blocks
  const Seconds time = request.arrival;
  if (parts_.deployment.is_disaggregated()) {
    prefilled_[request.id] = {.arrival = time, .first_token = {}, .max_tokens = request.max_tokens};
    request.max_tokens = 1;
  }
  submit(arrivals_, std::move(request), time);
}

void Cluster::submit(Pool& pool, Request request, Seconds time) {
  pool.loads.clear();
  Load all;
  for (const Replica* replica : pool.replicas) {
    Load& load = pool.loads.emplace_back();
    for (const VirtualEngine& engine : replica->engines) load += engine.load(time);
    all += load;
  }
  require_room_for(request, all.requests, all.tokens);
  std::deque<VirtualEngine>& engines = pool.replicas[pool.router.choose(request, pool.loads)]->engines;
  const auto requests = [time](const VirtualEngine& engine) { return engine.load(time).requests; };
  std::ranges::min_element(engines, {}, requests)->submit(std::move(request));
}

void Cluster::finish(Replica& replica, const Sequence& sequence) {
  ++replica.finished;
  if (replica.role == ReplicaRole::decode) return finish_decode(sequence);
  if (replica.role == ReplicaRole::prefill) {
    const auto found = prefilled_.find(sequence.request.id);
    if (found->second.max_tokens > 1) return send(replica, sequence, found->second);
    prefilled_.erase(found);
  }
  if (callbacks_.on_finished) callbacks_.on_finished(sequence);
}

void Cluster::send(Replica& replica, const Sequence& sequence, Prefilled& prefilled) {
  prefilled.first_token = sequence.token_times.front();
  prefilled.num_cached_tokens = sequence.num_cached_tokens;
  prefilled.num_preemptions = sequence.num_preemptions;
  replica.link_free = std::max(replica.link_free, prefilled.first_token) +
                      kv_sending_time(parts_.deployment, parts_.machine, parts_.model, parts_.options.kv_cache_dtype,
                                      sequence.num_prompt_tokens());
  Request request = sequence.request;
  request.prompt_token_ids = sequence.tokens;
  request.prompt_received = true;
  request.max_tokens = prefilled.max_tokens - 1;
  request.arrival = replica.link_free + kv_latency(parts_.deployment, parts_.machine);
  on_the_way_.push({request.arrival, sent_++, request});
}

void Cluster::finish_decode(const Sequence& sequence) {
  const auto found = prefilled_.find(sequence.request.id);
  const Prefilled& before = found->second;
  Request request = sequence.request;
  request.prompt_token_ids.pop_back();
  request.prompt_received = false;
  request.max_tokens = before.max_tokens;
  request.arrival = before.arrival;
  Sequence whole(std::move(request));
  whole.tokens = sequence.tokens;
  whole.token_times = {before.first_token};
  whole.token_times.insert(whole.token_times.end(), sequence.token_times.begin(), sequence.token_times.end());
  whole.status = sequence.status;
  whole.finish_reason = sequence.finish_reason;
  whole.num_cached_tokens = before.num_cached_tokens;
  whole.num_preemptions = before.num_preemptions + sequence.num_preemptions;
  prefilled_.erase(found);
  if (callbacks_.on_finished) callbacks_.on_finished(whole);
}

}  // namespace dculab::sim
