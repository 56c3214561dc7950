#include "sim/serving/cluster.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/prefix_cache.hpp"

namespace dculab::sim {

int one_in(const Deployment& deployment) {
  if (!deployment.is_disaggregated()) return deployment.of(ReplicaRole::both).ranks();
  return std::gcd(deployment.of(ReplicaRole::prefill).ranks(), deployment.of(ReplicaRole::decode).ranks());
}

Cluster::Cluster(const EngineParts& parts, ClusterCallbacks callbacks)
    : parts_(parts),
      callbacks_(std::move(callbacks)),
      arrivals_{{}, {parts.deployment.routing, parts.options.block_size}, {}},
      transfers_{{}, {parts.deployment.routing, parts.options.block_size}, {}},
      one_in_(one_in(parts.deployment)) {
  const Deployment& deployment = parts.deployment;
  if (deployment.role_switching) roles_.emplace(*deployment.role_switching);
  if (!deployment.is_disaggregated())
    for (int count = 0; count < deployment.data_parallel_size; ++count) add_replica(ReplicaRole::both, arrivals_);
  for (int count = 0; count < deployment.prefill_replicas; ++count) add_replica(ReplicaRole::prefill, arrivals_);
  for (int count = 0; count < deployment.decode_replicas; ++count) add_replica(ReplicaRole::decode, transfers_);
}

void Cluster::add_replica(ReplicaRole role, Pool& pool) {
  Replica& replica = replicas_.emplace_back();
  replica.role = role;
  const ReplicaDevices devices = parts_.deployment.of(role);
  const auto stages = static_cast<std::size_t>(devices.pipeline_parallel_size);
  const auto groups = static_cast<std::size_t>(devices.ranks() / one_in_);
  replica.stages.assign(groups, StageTimes(stages));
  replica.link_free.resize(groups);
  replica.store_free.resize(groups);
  for (std::size_t index = 0; index < groups * stages; ++index) {
    ServingCallbacks callbacks;
    if (callbacks_.on_step)
      callbacks.on_step = [this, engine = static_cast<int>(engines_.size())](const ServedStep& step) {
        callbacks_.on_step(step, engine);
      };
    callbacks.on_finished = [this, &replica, index](const Sequence& sequence) { finish(replica, index, sequence); };
    engines_.push_back(
        &replica.engines.emplace_back(parts_, role, replica.stages[index / stages], std::move(callbacks)));
  }
  pool.replicas.push_back(&replica);
}

VirtualEngine* Cluster::earliest_engine() {
  VirtualEngine* earliest = nullptr;
  for (VirtualEngine* engine : engines_)
    if (engine->is_busy() && (earliest == nullptr || engine->now() < earliest->now())) earliest = engine;
  return earliest;
}

std::optional<Request> Cluster::read_next() {
  std::optional<Request> next = source_->next_to_serve();
  for (; next && next->id % one_in_ != 0; next = source_->next_to_serve()) {
    ++read_;
    (void)tokens_in_store(*next);  // what others of its kind put there, too
  }
  if (!next) {
    if (source_->is_exhausted() && read_ % one_in_ != 0)
      throw InputError("workload.requests: of every " + std::to_string(one_in_) + " requests one is simulated, and " +
                       std::to_string(read_) + " do not divide by that");
    return next;
  }
  ++read_;
  const Seconds sent = next->arrival;
  reader_free_ = std::max(reader_free_, sent) + parts_.machine.stack.reading_time(next->prompt_token_ids.size());
  next->arrival = reader_free_;
  next->reading = reader_free_ - sent;
  return next;
}

void Cluster::run(RequestSource& source) {
  source_ = &source;
  std::optional<Request> next = read_next();
  while (true) {
    VirtualEngine* engine = earliest_engine();
    const bool transfer_first = !on_the_way_.empty() && (!next || on_the_way_.top().arrival <= next->arrival);
    const auto comes_first = [engine](Seconds time) { return engine == nullptr || time <= engine->now(); };
    if (transfer_first && comes_first(on_the_way_.top().arrival)) {
      switch_roles(on_the_way_.top().arrival);
      Transfer transfer = on_the_way_.top();
      on_the_way_.pop();
      arrive(std::move(transfer));
    } else if (!transfer_first && next && comes_first(next->arrival)) {
      switch_roles(next->arrival);
      route_arrival(*std::move(next));
      next = read_next();
    } else if (engine != nullptr) {
      switch_roles(engine->now());
      engine->step();
      if (!next) next = read_next();  // a request that finished may let another come
    } else {
      return;
    }
  }
}

Replica& Cluster::replica_of(const VirtualEngine& engine) {
  const auto has = [&engine](const Replica& replica) {
    return std::ranges::any_of(replica.engines, [&engine](const VirtualEngine& each) { return &each == &engine; });
  };
  return *std::ranges::find_if(replicas_, has);
}

// Before what happens at `time`.
void Cluster::switch_roles(Seconds time) {
  if (!roles_) return;
  role_loads_.clear();
  for (const Replica& replica : replicas_) {
    std::int64_t blocks = 0;
    for (const VirtualEngine& engine : replica.engines) blocks += engine.scheduler().pool().num_blocks();
    role_loads_.push_back(replica.work.load(replica.role, parts_.options, blocks));
  }
  if (const auto index = roles_->look(role_loads_, time)) switch_role(replicas_[*index]);
}

void Cluster::switch_role(Replica& replica) {
  const bool prefills = replica.role == ReplicaRole::prefill;
  replica.role = prefills ? ReplicaRole::decode : ReplicaRole::prefill;
  ++replica.role_switches;
  for (Pool* pool : {&arrivals_, &transfers_}) pool->replicas.clear();
  for (Replica& each : replicas_)
    (each.role == ReplicaRole::prefill ? arrivals_ : transfers_).replicas.push_back(&each);
}

void Cluster::arrive(Transfer transfer) {
  if (transfer.reader != nullptr) {
    --reading_[transfer.reader];
    return begin(*transfer.reader, std::move(transfer.request));
  }
  const Chosen chosen = choose(transfers_, transfer.request, transfer.arrival);
  chosen.replica.work.begin_decode(transfer.request);
  chosen.engine.submit(std::move(transfer.request));
}

void Cluster::route_arrival(Request request) {
  const auto refuse = [&request](const VirtualEngine& engine) {
    if (const auto reason = engine.refusal(request))
      throw InputError("request " + std::to_string(request.id + 1) + ": " + *reason);
  };
  refuse(*engines_.back());  // who decodes
  const Chosen chosen = choose(arrivals_, request, request.arrival);
  read_or_submit(chosen, std::move(request));
}

// A request that has all it needs.
void Cluster::begin(VirtualEngine& engine, Request request) {
  if (parts_.deployment.is_disaggregated()) {
    prefilled_[request.id] = begin_prefill(request);
    replica_of(engine).work.begin_prompt(request);
  }
  if (const auto reason = engine.refusal(request))
    throw InputError("request " + std::to_string(request.id + 1) + ": " + *reason);
  engine.submit(std::move(request));
}

// Whole blocks, and one token at least is left to compute. Prompts put their blocks into the store as they come: who
// comes later reads them, though the first may not have computed them yet.
int Cluster::tokens_in_store(const Request& request) {
  const std::optional<KvStore>& store = parts_.deployment.kv_store;
  if (!store) return 0;
  const int prompt = static_cast<int>(request.prompt_token_ids.size()), block = parts_.options.block_size;
  if (store->hit_rate) return std::min(static_cast<int>(*store->hit_rate * prompt) / block * block, prompt - 1);
  int found = 0;
  PrefixHash prefix;
  for (int begin = 0; begin + block <= prompt; begin += block) {
    prefix = extend(
        prefix,
        std::span(request.prompt_token_ids).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(block)));
    if (!stored_.insert(prefix.low).second && found == begin) found += block;
  }
  return std::min(found, prompt - 1);
}

void Cluster::read_or_submit(const Chosen& chosen, Request request) {
  request.num_received_tokens = tokens_in_store(request);
  if (request.num_received_tokens == 0) return begin(chosen.engine, std::move(request));
  const std::size_t engine = static_cast<std::size_t>(
      std::ranges::find_if(chosen.replica.engines, [&](const auto& each) { return &each == &chosen.engine; }) -
      chosen.replica.engines.begin());
  Seconds& free = chosen.replica.store_free[std::min(engine, chosen.replica.store_free.size() - 1)];
  const Seconds asked = request.arrival;
  free = std::max(free, asked) + store_reading_time(parts_.deployment, parts_.machine, parts_.model,
                                                    parts_.options.kv_cache_dtype, request.num_received_tokens);
  request.arrival = free + parts_.deployment.kv_store->latency;
  request.reading += request.arrival - asked;
  ++reading_[&chosen.engine];
  on_the_way_.push({request.arrival, sent_++, request, &chosen.engine});
}

ReplicaLoad Cluster::load_of(const VirtualEngine& engine, Seconds time) const {
  ReplicaLoad load = engine.load(time);
  if (const auto reading = reading_.find(&engine); reading != reading_.end()) load.requests += reading->second;
  return load;
}

Cluster::Chosen Cluster::choose(Pool& pool, const Request& request, Seconds time) {
  pool.loads.clear();
  ReplicaLoad all;
  for (const Replica* replica : pool.replicas) {
    ReplicaLoad& load = pool.loads.emplace_back();
    for (const VirtualEngine& engine : replica->engines) load += load_of(engine, time);
    all += load;
  }
  require_room_for(request, all.requests, all.tokens);
  Replica& replica = *pool.replicas[pool.router.choose(request, pool.loads)];
  const auto requests = [this, time](const VirtualEngine& engine) { return load_of(engine, time).requests; };
  return {replica, *std::ranges::min_element(replica.engines, {}, requests)};
}

void Cluster::finish(Replica& replica, std::size_t engine, const Sequence& sequence) {
  ++replica.finished;
  if (parts_.deployment.is_disaggregated()) {
    const auto found = prefilled_.find(sequence.request.id);
    if (found->second.is_computed) {
      replica.work.end_decode(sequence.request);
      return finish_decode(sequence);
    }
    replica.work.end_prompt(sequence.request);
    if (has_answer(sequence, found->second)) return send(replica, engine, sequence, found->second);
    prefilled_.erase(found);
  }
  answered(sequence);
}

void Cluster::answered(const Sequence& sequence) {
  if (callbacks_.on_finished) callbacks_.on_finished(sequence);
  if (sequence.sample == 0) source_->finished(sequence.token_times.back(), one_in_);
}

void Cluster::send(Replica& replica, std::size_t engine, const Sequence& sequence, Prefilled& prefilled) {
  Request request = decode_request(sequence, prefilled);
  Seconds& free = replica.link_free[std::min(engine, replica.link_free.size() - 1)];
  free = std::max(free, prefilled.first_token) + kv_sending_time(parts_.deployment, parts_.machine, parts_.model,
                                                                 parts_.options.kv_cache_dtype,
                                                                 sequence.num_prompt_tokens());
  request.arrival = free + kv_latency(parts_.deployment, parts_.machine);
  on_the_way_.push({request.arrival, sent_++, request});
}

void Cluster::finish_decode(const Sequence& sequence) {
  const auto found = prefilled_.find(sequence.request.id);
  const Sequence whole = joined(sequence, found->second);
  prefilled_.erase(found);
  answered(whole);
}

}  // namespace dculab::sim
