#include "engine/parallel/ranked_executor.hpp"

#include <exception>
#include <utility>

#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "engine/parallel/cpu_shares.hpp"
#include "engine/parallel/weight_parts.hpp"

namespace dculab::engine {
namespace {

[[nodiscard]] const ModelShape& divisible(const ModelShape& shape, const Division& division) {
  require_divisible(shape, shape.layer_format(), division);
  return shape;
}

// One command of rank 0, on another rank. False: there are no more.
[[nodiscard]] bool obey(MessageReader message, StepPlan& plan, CpuExecutor& executor) {
  switch (message.take<RankCommand>()) {
    case RankCommand::stop:
      return false;
    case RankCommand::run:
      message.take_plan(plan);
      (void)executor.run(plan);
      return true;
    case RankCommand::copy_blocks:
      executor.copy_blocks(message.take_list<BlockCopy>());
      return true;
    case RankCommand::move_slots:
      executor.move_slots(message.take_list<SlotMove>());
      return true;
    case RankCommand::swap_blocks: {
      const auto out = message.take_list<BlockCopy>(), in = message.take_list<BlockCopy>();
      executor.swap_blocks(out, in);
      return true;
    }
    case RankCommand::forget:
      executor.forget(message.take<SequenceId>());
      return true;
    case RankCommand::fill_kv_cache:
      executor.fill_kv_cache(message.take<std::uint64_t>());
      return true;
  }
  return false;
}

}  // namespace

// Every rank makes its part before the whole goes, and all are there before the first step.
RankedExecutor::RankedExecutor(ModelWeights weights, const KvCacheOptions& kv_cache, int num_threads,
                               const Division& division)
    : whole_(divisible(weights.shape, division)),
      part_(part_of(whole_, whole_.layer_format(), division)),
      threads_of_each_(threads_of_rank(num_threads, division)),
      cpus_(allowed_cpus()),
      group_(division.tensor_parallel_size) {
  children_ = std::make_unique<ChildProcesses>(group_, [&](int rank, const std::function<void()>& watch) {
    serve(weights, kv_cache, Communicator(group_, rank, watch));
  });
  communicator_.emplace(group_, 0, [this] { children_->require_alive(); });
  try {
    own_ = make_part(weights, kv_cache, *communicator_);
    communicator_->meet();
  } catch (const std::exception& error) {
    group_.fail(FailureKind::input, error.what());
    bind_thread(cpus_);
    throw;
  }
}

RankedExecutor::~RankedExecutor() {
  try {
    (void)begin(RankCommand::stop);
    communicator_->broadcast(message_);
  } catch (const std::exception&) {
    // They end by what ended the work.
  }
  children_.reset();
  own_.reset();
  bind_thread(cpus_);
}

std::unique_ptr<CpuExecutor> RankedExecutor::make_part(ModelWeights& weights, const KvCacheOptions& kv_cache,
                                                       Communicator& communicator) const {
  const std::vector<int> cpus = cpus_of_rank(cpus_, communicator.rank(), group_.ranks());
  bind_thread(cpus);  // memory is first touched where it is used
  ModelWeights own = part_of_weights(weights, part_, communicator.rank());
  weights = {};
  auto executor = std::make_unique<CpuExecutor>(std::move(own), kv_cache, threads_of_each_,
                                                RankPlace{&communicator, whole_.vocab_size});
  bind_team(executor->threads(), cpus);
  return executor;
}

// On another rank, until there is nothing more to do.
void RankedExecutor::serve(ModelWeights& weights, const KvCacheOptions& kv_cache, Communicator communicator) const {
  const std::unique_ptr<CpuExecutor> executor = make_part(weights, kv_cache, communicator);
  communicator.meet();
  std::vector<std::byte> message;
  StepPlan plan;
  do communicator.broadcast(message);
  while (obey(MessageReader(message), plan, *executor));
}

MessageWriter RankedExecutor::begin(RankCommand command) {
  MessageWriter message(message_);
  message.add(command);
  return message;
}

void RankedExecutor::command(const std::function<void()>& act) {
  try {
    communicator_->broadcast(message_);
    act();
  } catch (const InputError& error) {
    group_.fail(FailureKind::input, error.what());
    throw;
  } catch (const std::exception& error) {
    group_.fail(FailureKind::other, error.what());
    throw;
  }
}

void RankedExecutor::copy_blocks(std::span<const BlockCopy> copies) {
  begin(RankCommand::copy_blocks).add_list(copies);
  command([&] { own_->copy_blocks(copies); });
}

void RankedExecutor::move_slots(std::span<const SlotMove> moves) {
  begin(RankCommand::move_slots).add_list(moves);
  command([&] { own_->move_slots(moves); });
}

void RankedExecutor::swap_blocks(std::span<const BlockCopy> out, std::span<const BlockCopy> in) {
  MessageWriter message = begin(RankCommand::swap_blocks);
  message.add_list(out);
  message.add_list(in);
  command([&] { own_->swap_blocks(out, in); });
}

void RankedExecutor::forget(SequenceId id) {
  begin(RankCommand::forget).add(id);
  command([&] { own_->forget(id); });
}

void RankedExecutor::fill_kv_cache(std::uint64_t seed) {
  begin(RankCommand::fill_kv_cache).add(seed);
  command([&] { own_->fill_kv_cache(seed); });
}

StepResult RankedExecutor::run(const StepPlan& plan) {
  const auto start = std::chrono::steady_clock::now();
  begin(RankCommand::run).add_plan(plan);
  StepResult result;
  command([&] { result = own_->run(plan); });
  result.duration = Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return result;
}

std::unique_ptr<DraftHeads> RankedExecutor::make_draft_heads(const MedusaWeights&) {
  throw InputError("Medusa heads run in one process: leave tensor_parallel_size out, or draft with a model or n-grams");
}

std::string RankedExecutor::device_name() const {
  return "CPU, " + std::to_string(group_.ranks()) + " processes of " + std::to_string(threads_of_each_) +
         (threads_of_each_ == 1 ? " thread" : " threads");
}

void require_shared_device(const DeviceChoice& device, const Division& division) {
  if (division.is_divided() && device.kind != DeviceKind::cpu)
    throw InputError("tensor_parallel_size " + std::to_string(division.tensor_parallel_size) +
                     " is for --device cpu: processes of this machine share a model there, and no GPUs do");
}

std::unique_ptr<ModelExecutor> make_divided_executor(const OpenDevice& device, ModelWeights weights,
                                                     const KvCacheOptions& kv_cache, const EngineOptions& options,
                                                     int num_threads, const Division& division) {
  require_shared_device(device.choice, division);
  if (!division.is_divided()) {
    require_divisible(weights.shape, weights.shape.layer_format(), division);
    return make_executor(device, std::move(weights), kv_cache, options, num_threads);
  }
  const std::vector<std::string> reasons = clashes(options.kv(), KvFeature::divided);
  if (!reasons.empty()) throw InputError(reasons.front());
  return std::make_unique<RankedExecutor>(std::move(weights), kv_cache, num_threads, division);
}

}  // namespace dculab::engine
