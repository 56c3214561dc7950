#include "engine/generate/serve_replicas.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/error.hpp"
#include "engine/generate/engine_core.hpp"
#include "engine/generate/wall_clock.hpp"

namespace dculab::engine {
namespace {

using KvBytes = std::shared_ptr<const std::vector<std::byte>>;

// One replica's part of a run, on the thread that calls.
class ReplicaLoop {
 public:
  // What all replicas share.
  struct Shared {
    const EngineOptions& options;
    ReplicaDesk& desk;
    const WallClock& clock;
    std::mutex& on_step_lock;
    const std::function<void(const ServedStep&, int replica)>& on_step;
  };

  ReplicaLoop(int number, OpenModel& model, const Shared& shared)
      : number_(number),
        executor_(*model.executor),
        shared_(shared),
        clock_(shared.clock),
        core_(model, shared.options, clock_, RequestRecords::drop,
              {.on_tokens = [this](const Sequence&, int count) { uncounted_ += count; },
               .on_finished = [this](const Sequence& sequence) { finish(sequence); },
               .on_step = [this](const ServedStep& step) { see(step); }}) {}

  // Until all requests of all replicas are done.
  void run() {
    for (;;) {
      const bool was_idle = core_.scheduler().idle();
      std::optional<std::vector<Request>> requests = shared_.desk.take(number_, was_idle);
      if (!requests) return;
      if (was_idle) woken_ = clock_.now();
      for (Request& request : *requests) {
        const SequenceId id = request.id;
        if (const auto reason = core_.loop().submit(std::move(request)))
          throw InputError("request " + std::to_string(id + 1) + ": " + *reason);
      }
      core_.loop().step();
      count_tokens();
    }
  }

  [[nodiscard]] ServedReplica served() const {
    const ServingReport& report = core_.loop().report();
    const ReplicaDesk::Counts& counts = shared_.desk.counts(number_);
    return {.role = counts.role,
            .role_switches = counts.role_switches,
            .requests = counts.requests,
            .num_steps = report.num_steps,
            .num_preemptions = core_.scheduler().num_preemptions(),
            .busy = report.executor_time,
            .drafts = report.drafts,
            .drafting = report.drafting,
            .head_sets = core_.scheduler().head_sets(),
            .handed_over = counts.handed_over,
            .handed_over_bytes = Bytes(static_cast<double>(counts.handed_over_bytes)),
            .sending = sending_,
            .receiving = report.receiving};
  }
  [[nodiscard]] const ServingTimeline& timeline() const { return timeline_; }

 private:
  void see(const ServedStep& step) {
    ServedStep whole = step;
    if (previous_end_) whole.begin = std::max(*previous_end_, woken_);
    previous_end_ = step.end;
    timeline_.add(whole);
    if (shared_.on_step) {
      const std::lock_guard lock(shared_.on_step_lock);
      shared_.on_step(whole, number_);
    }
    for (const Sequence* sequence : step.scheduler.sampled())
      if (sequence->num_generated() == 0 && shared_.desk.is_handed_over(sequence->request.id)) copy_out(*sequence);
  }

  // While the sequence still has its blocks: it ends with this step.
  void copy_out(const Sequence& sequence) {
    const Seconds begin = clock_.now();
    const auto size = static_cast<std::size_t>(core_.scheduler().pool().blocks_for(sequence.num_tokens()));
    auto kv = std::make_shared<std::vector<std::byte>>(size * executor_.bytes_per_block());
    executor_.read_blocks(sequence.block_table.blocks().first(size), *kv);
    copied_out_[sequence.request.id] = std::move(kv);
    sending_ += clock_.now() - begin;
  }

  void count_tokens() {
    if (uncounted_ > 0) shared_.desk.count_tokens(number_, std::exchange(uncounted_, 0));
  }

  void finish(const Sequence& sequence) {
    count_tokens();
    KvBytes kv;
    if (const auto found = copied_out_.find(sequence.request.id); found != copied_out_.end()) {
      kv = std::move(found->second);
      copied_out_.erase(found);
    }
    shared_.desk.finish(number_, sequence, std::move(kv));
  }

  const int number_;
  ModelExecutor& executor_;
  const Shared& shared_;
  WallClock clock_;
  ServingTimeline timeline_;
  std::optional<Seconds> previous_end_;
  Seconds woken_, sending_;
  std::int64_t uncounted_ = 0;                          // tokens that the desk has not been told of
  std::unordered_map<SequenceId, KvBytes> copied_out_;  // prompts that end with the step that has just run
  EngineCore core_;
};

// Gives requests to the desk as they arrive.
void receive_requests(const NextRequest& next, const Scheduler& judge, WallClock clock, ReplicaDesk& desk) {
  while (std::optional<Request> request = next()) {
    const std::string place = "request " + std::to_string(request->id + 1) + ": ";
    if (const auto reason = judge.refusal(*request)) throw InputError(place + *reason);
    if (request->n != 1) throw InputError(place + "replicas serve one sample of a prompt; ask for n = 1");
    clock.wait_until(request->arrival);
    desk.submit(*std::move(request));
  }
  desk.close();
}

[[nodiscard]] ServedWorkload gathered(std::span<const std::unique_ptr<ReplicaLoop>> loops) {
  ServedWorkload served;
  std::vector<ServingTimeline> timelines;
  for (const auto& loop : loops) {
    const ServedReplica& replica = served.replicas.emplace_back(loop->served());
    served.num_steps += replica.num_steps;
    served.num_preemptions += replica.num_preemptions;
    served.busy += replica.busy;
    served.drafts += replica.drafts;
    served.drafting += replica.drafting;
    served.head_sets += replica.head_sets;
    timelines.push_back(loop->timeline());
  }
  served.timeline = ServingTimeline::together(timelines);
  return served;
}

}  // namespace

std::unique_ptr<ReplicaThreads> open_replicas(const ModelWeights& weights, const EngineOptions& options,
                                              const GeneratorOptions& asked, int replicas) {
  if (asked.device.kind != DeviceKind::cpu)
    throw InputError("several replicas share the CPU's cores and memory; use --device cpu");
  if (asked.division.is_divided())
    throw InputError("several replicas run the whole model each; leave --tensor-parallel-size out");
  const OpenDevice device = open_device({});
  const DraftWeights draft = load_draft(asked, options, weights);
  const double share = 1.0 / replicas;
  const Bytes taken = memory_besides_kv(device, weights.shape, options) +
                      draft_memory_besides_kv(device, weights.shape, draft, options);
  std::optional<Bytes> memory = asked.kv_cache_memory;
  if (memory) *memory *= share;
  const int num_blocks =
      choose_num_blocks(weights.shape, options, memory, std::max(Bytes(), share * device.free_memory() - taken),
                        draft_block_bytes(draft, options));
  const int threads = std::max(1, thread_count(asked.num_threads) / replicas);
  return open_replicas(weights, options, draft, num_blocks, threads, replicas);
}

std::unique_ptr<ReplicaThreads> open_replicas(const ModelWeights& weights, const EngineOptions& options,
                                              const DraftWeights& draft, int num_blocks, int num_threads,
                                              int replicas) {
  return std::make_unique<ReplicaThreads>(replicas, [&](kernels::cpu::CpuShare cpus) {
    OpenDevice device = open_device({});
    share_threads(device, num_threads, cpus);
    return open_model(weights, options, draft, std::move(device), num_blocks, num_threads);
  });
}

ServedWorkload serve_on_replicas(ReplicaThreads& replicas, const EngineOptions& options, const ReplicaChoices& choices,
                                 const NextRequest& next, const ReplicaCallbacks& callbacks) {
  const WallClock clock;
  ReplicaDesk desk(choices, options, replicas.executor(0).kv_cache().num_blocks, clock, [&](const Sequence& sequence) {
    if (callbacks.on_finished) callbacks.on_finished(sequence);
  });
  const Scheduler judge(options, replicas.limits());  // of what can never be served
  std::mutex on_step_lock;
  const ReplicaLoop::Shared shared{options, desk, clock, on_step_lock, callbacks.on_step};
  std::vector<std::unique_ptr<ReplicaLoop>> loops(static_cast<std::size_t>(replicas.count()));
  const auto or_abandon = [&desk](const auto& work) {
    try {
      work();
    } catch (...) {
      desk.abandon();
      throw;
    }
  };
  replicas.run(
      [&](int number, OpenModel& model) {
        or_abandon([&] {
          auto& loop = loops[static_cast<std::size_t>(number)];
          loop = std::make_unique<ReplicaLoop>(number, model, shared);
          loop->run();
        });
      },
      [&] { or_abandon([&] { receive_requests(next, judge, clock, desk); }); });
  return gathered(loops);
}

ServedWorkload serve_on_replicas(ReplicaThreads& replicas, const EngineOptions& options, const ReplicaChoices& choices,
                                 const RequestWorkload& workload, const ServiceLevel& objective,
                                 const ReplicaCallbacks& callbacks) {
  if (workload.max_concurrency)
    throw InputError("workload.max_concurrency: replicas are sent requests as they arrive; serve with one replica");
  RequestSource source(workload);
  ServingMetrics metrics(objective);
  ReplicaCallbacks all = callbacks;
  all.on_finished = [&](const Sequence& sequence) {
    metrics.add(sequence);
    if (callbacks.on_finished) callbacks.on_finished(sequence);
  };
  ServedWorkload served = serve_on_replicas(
      replicas, options, choices, [&] { return source.next(); }, all);
  served.metrics = std::move(metrics);
  return served;
}

}  // namespace dculab::engine
