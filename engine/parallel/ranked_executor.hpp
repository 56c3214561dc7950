// Processes of this machine that share a model, as one executor: this process is rank 0, the others are copies of it.
//
// Each has a CpuExecutor with its part of the weights and of the KV cache and its share of the CPUs. Rank 0 hands every
// step to the others through shared memory, and all run it at the same time; what they exchange are ops of the plan
// (model/shard.hpp, model/expert_shard.hpp). An exchange is timed from when the last rank has come to it; what a rank
// waited before is part of the op that came before. After an error, or once a process of a rank has ended, every call
// throws.
//
// Make it while the process has one thread (engine/exchange/child_processes.hpp).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/engine_options.hpp"
#include "engine/exchange/child_processes.hpp"
#include "engine/exchange/communicator.hpp"
#include "engine/executors/cpu_executor.hpp"
#include "engine/executors/open_executor.hpp"
#include "engine/parallel/division.hpp"
#include "engine/parallel/step_message.hpp"

namespace dculab::engine {

class RankedExecutor final : public ModelExecutor {
 public:
  // `num_threads` of all ranks together, at least one each. Throws InputError for a model that cannot be divided so,
  // and for what keeps a rank from having its part.
  RankedExecutor(ModelWeights weights, const KvCacheOptions& kv_cache, int num_threads, const Division& division);
  ~RankedExecutor() override;
  RankedExecutor(const RankedExecutor&) = delete;
  RankedExecutor& operator=(const RankedExecutor&) = delete;

  void copy_blocks(std::span<const BlockCopy> copies) override;
  void move_slots(std::span<const SlotMove> moves) override;
  void swap_blocks(std::span<const BlockCopy> out, std::span<const BlockCopy> in) override;
  void forget(SequenceId id) override;
  void fill_kv_cache(std::uint64_t seed) override;  // of each rank its own
  void set_op_timing(OpTiming) override {}

  // `plan` is of planned_model().
  StepResult run(const StepPlan& plan) override;

  [[nodiscard]] std::span<const float> logits(int row) const override { return own_->logits(row); }
  void copy_last_hidden(std::span<const int> rows, std::span<float> out) const override {
    own_->copy_last_hidden(rows, out);
  }
  // Throws InputError: the head that they share with the model is divided.
  [[nodiscard]] std::unique_ptr<DraftHeads> make_draft_heads(const MedusaWeights& weights) override;
  [[nodiscard]] const ModelShape& shape() const override { return whole_; }
  [[nodiscard]] const ModelShape& planned_model() const override { return part_; }
  [[nodiscard]] const KvCacheOptions& kv_cache() const override { return own_->kv_cache(); }
  [[nodiscard]] ExpertHistogram take_expert_histogram() override { return own_->take_expert_histogram(); }
  [[nodiscard]] int num_threads() const override { return threads_of_each_ * group_.ranks(); }
  [[nodiscard]] std::string device_name() const override;
  [[nodiscard]] std::string build_name() const override { return own_->build_name(); }

  [[nodiscard]] const std::vector<int>& process_ids() const { return children_->process_ids(); }  // of ranks 1 on

 private:
  [[nodiscard]] std::unique_ptr<CpuExecutor> make_part(ModelWeights& weights, const KvCacheOptions& kv_cache,
                                                       Communicator& communicator) const;
  void serve(ModelWeights& weights, const KvCacheOptions& kv_cache, Communicator communicator) const;
  // Lets all ranks do the same, and the group fail where this one cannot.
  void command(const std::function<void()>& act);
  [[nodiscard]] MessageWriter begin(RankCommand command);

  ModelShape whole_, part_;
  int threads_of_each_;
  std::vector<int> cpus_;  // of the process before it was divided
  RankGroup group_;
  std::unique_ptr<ChildProcesses> children_;
  std::optional<Communicator> communicator_;
  std::unique_ptr<CpuExecutor> own_;
  std::vector<std::byte> message_;
};

// On the CPU with `division`'s ranks; else as make_executor() has it. Throws InputError for a division on a GPU.
[[nodiscard]] std::unique_ptr<ModelExecutor> make_divided_executor(const OpenDevice& device, ModelWeights weights,
                                                                   const KvCacheOptions& kv_cache,
                                                                   const EngineOptions& options, int num_threads,
                                                                   const Division& division);

// Throws InputError where `division` is of processes and `device` is none that they can share.
void require_shared_device(const DeviceChoice& device, const Division& division);

}  // namespace dculab::engine
