#include "engine/generate/replica_desk.hpp"

#include <utility>

#include "core/kv/table.hpp"

namespace dculab::engine {

std::vector<std::string> problems(const ReplicaChoices& choices, const EngineOptions& options) {
  std::vector<std::string> found;
  if ((choices.prefill_replicas > 0) != (choices.decode_replicas > 0))
    found.emplace_back("prefill_replicas and decode_replicas need each other");
  if (!choices.is_disaggregated()) return found;
  if (!combines(options.kv(), KvFeature::handing_over))
    found.push_back(
        "only a whole KV cache of one format is handed from a prefill to a decode replica, not one of "
        "kv_cache.retention " +
        std::string(name(options.kv_retention.policy)) + " and kv_cache.dtype " +
        std::string(name(options.kv_cache_dtype)));
  if (options.groups_by_load)
    found.emplace_back("groups_by_load: a KV cache is of one set of heads, and is not handed over");
  if (options.speculative_config.enabled())
    found.emplace_back(
        "speculative_config needs what its drafter has read of a prompt, which is not handed from a "
        "prefill to a decode replica");
  if (options.batching != Batching::continuous)
    found.emplace_back("engine.batching: static batches are not split into prefill and decode replicas");
  return found;
}

ReplicaDesk::ReplicaDesk(const ReplicaChoices& choices, const EngineOptions& options, int num_blocks,
                         const WallClock& clock, OnFinished on_finished)
    : options_(options),
      num_blocks_(num_blocks),
      clock_(clock),
      on_finished_(std::move(on_finished)),
      is_disaggregated_(choices.is_disaggregated()),
      replicas_(static_cast<std::size_t>(choices.replicas())),
      arrivals_(choices.routing, options.block_size),
      transfers_(choices.routing, options.block_size) {
  if (choices.role_switching) roles_.emplace(*choices.role_switching);
  if (!is_disaggregated_) return;
  for (std::size_t index = 0; index < replicas_.size(); ++index)
    replicas_[index].counts.role =
        index < static_cast<std::size_t>(choices.prefill_replicas) ? ReplicaRole::prefill : ReplicaRole::decode;
}

void ReplicaDesk::submit(Request request) {
  const std::lock_guard lock(mutex_);
  ++unfinished_;
  switch_roles();
  if (is_disaggregated_) prefilled_[request.id] = begin_prefill(request);
  send(arrivals_, ReplicaRole::prefill, std::move(request));
}

void ReplicaDesk::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  changed_.notify_all();
}

void ReplicaDesk::abandon() {
  const std::lock_guard lock(mutex_);
  is_abandoned_ = true;
  changed_.notify_all();
}

// To one of the replicas that take what is for `role`.
void ReplicaDesk::send(Router& router, ReplicaRole role, Request request) {
  std::vector<Replica*> pool;
  std::vector<ReplicaLoad> loads;
  for (Replica& replica : replicas_) {
    if (!takes(replica, role)) continue;
    pool.push_back(&replica);
    loads.push_back(replica.load);
  }
  Replica& chosen = *pool[router.choose(request, loads)];
  chosen.load += {1, std::ssize(request.prompt_token_ids)};
  if (is_disaggregated_ && role == ReplicaRole::prefill) chosen.work.begin_prompt(request);
  if (is_disaggregated_ && role == ReplicaRole::decode) chosen.work.begin_decode(request);
  chosen.inbox.push_back(std::move(request));
  changed_.notify_all();
}

void ReplicaDesk::switch_roles() {
  if (!roles_) return;
  std::vector<RoleLoad> loads;
  for (const Replica& replica : replicas_)
    loads.push_back(replica.work.load(replica.counts.role, options_, num_blocks_));
  const auto index = roles_->look(loads, clock_.now());
  if (!index) return;
  Counts& counts = replicas_[*index].counts;
  counts.role = counts.role == ReplicaRole::prefill ? ReplicaRole::decode : ReplicaRole::prefill;
  ++counts.role_switches;
}

std::optional<std::vector<Request>> ReplicaDesk::take(int replica, bool is_idle) {
  std::unique_lock lock(mutex_);
  std::vector<Request>& inbox = replicas_[static_cast<std::size_t>(replica)].inbox;
  const auto is_over = [this] { return is_abandoned_ || (is_closed_ && unfinished_ == 0); };
  if (is_idle) changed_.wait(lock, [&] { return !inbox.empty() || is_over(); });
  if (is_abandoned_ || (inbox.empty() && is_over())) return std::nullopt;
  return std::exchange(inbox, {});
}

void ReplicaDesk::count_tokens(int replica, std::int64_t tokens) {
  const std::lock_guard lock(mutex_);
  replicas_[static_cast<std::size_t>(replica)].load.tokens += tokens;
  switch_roles();
}

bool ReplicaDesk::is_handed_over(SequenceId id) const {
  if (!is_disaggregated_) return false;
  const std::lock_guard lock(mutex_);
  const auto found = prefilled_.find(id);
  return found != prefilled_.end() && !found->second.is_computed && found->second.max_tokens > 1;
}

void ReplicaDesk::finish(int replica, const Sequence& sequence, std::shared_ptr<const std::vector<std::byte>> kv) {
  const std::lock_guard lock(mutex_);
  Replica& its = replicas_[static_cast<std::size_t>(replica)];
  ++its.counts.requests;
  its.load += {-1, -std::int64_t{sequence.num_tokens()}};
  const auto end = [&](const Sequence& whole) {
    on_finished_(whole);
    --unfinished_;
    changed_.notify_all();
  };
  if (!is_disaggregated_) return end(sequence);
  const auto found = prefilled_.find(sequence.request.id);
  if (found->second.is_computed) {
    its.work.end_decode(sequence.request);
    end(joined(sequence, found->second));
    prefilled_.erase(found);
    return;
  }
  its.work.end_prompt(sequence.request);
  if (!has_answer(sequence, found->second)) {
    prefilled_.erase(found);
    return end(sequence);
  }
  Request request = decode_request(sequence, found->second);
  request.arrival = clock_.now();
  ++its.counts.handed_over;
  its.counts.handed_over_bytes += std::ssize(*kv);
  request.received_kv = std::move(kv);
  send(transfers_, ReplicaRole::decode, std::move(request));
}

}  // namespace dculab::engine
