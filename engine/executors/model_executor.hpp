// An executor that holds a model: what the generator and the step benchmark need of it besides running plans.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/error.hpp"
#include "core/executor.hpp"
#include "core/expert_histogram.hpp"
#include "core/groups_by_load.hpp"
#include "engine/executors/draft_heads.hpp"
#include "engine/kv/kv_storage.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

struct MedusaWeights;
struct ModelWeights;

// Whether the ops of a step are timed one by one. On a GPU the events that it takes slow the step a little.
enum class OpTiming : std::uint8_t { off, on };

class ModelExecutor : public Executor {
 public:
  // Of the last step: [vocab_size]. Rows are those that SequenceSlice::num_logits asks for, in the order of the batch.
  [[nodiscard]] virtual std::span<const float> logits(int row) const = 0;

  // What lm_head read for these rows of the last step's logits: [rows.size(), hidden_size] to `out`.
  virtual void copy_last_hidden(std::span<const int> rows, std::span<float> out) const = 0;

  // From now on each step also leaves that of all its tokens, those without logits too. Throws InputError for a model
  // or a device that cannot.
  virtual void keep_all_hidden() {
    throw InputError("MTP layers are run with --device cpu, behind models of RMS norms, attention before the MLP");
  }
  // In the order of the batch: [tokens, hidden_size].
  [[nodiscard]] virtual std::span<const float> all_hidden() const { return {}; }

  // Heads beside the model, with its device and threads: it must outlive them. Throws InputError for heads that the
  // kernels cannot run.
  [[nodiscard]] virtual std::unique_ptr<DraftHeads> make_draft_heads(const MedusaWeights& weights) = 0;

  // The model with other weights, of fewer KV heads, over the same KV blocks, each of which then holds `block_size`
  // tokens; with its device and threads: it must outlive it. Throws InputError for a device or weights that cannot.
  [[nodiscard]] virtual std::unique_ptr<ModelExecutor> with_few_heads(const ModelWeights& /*weights*/,
                                                                      int /*block_size*/) {
    throw InputError(kHeadSetsOnCpu);
  }

  [[nodiscard]] virtual const ModelShape& shape() const = 0;
  // What steps are planned for: of an executor that several processes are, the part of each.
  [[nodiscard]] virtual const ModelShape& planned_model() const { return shape(); }
  [[nodiscard]] virtual const KvCacheOptions& kv_cache() const = 0;

  // Random values everywhere, so that decode steps can be measured without a prefill.
  virtual void fill_kv_cache(std::uint64_t seed) = 0;

  // OpTiming::off leaves StepResult::op_durations empty where timing costs time. Default: on.
  virtual void set_op_timing(OpTiming timing) = 0;

  // Which experts the steps since the last call chose; empty of a model without experts.
  [[nodiscard]] virtual ExpertHistogram take_expert_histogram() { return {}; }

  // CPU threads that compute: those that could be had, which may be fewer than were asked for. 0 on a GPU.
  [[nodiscard]] virtual int num_threads() const = 0;

  // What runs it, in words: "CPU, 2 threads"; and how it was built: "g++ 12.2.0, Highway AVX3".
  [[nodiscard]] virtual std::string device_name() const = 0;
  [[nodiscard]] virtual std::string build_name() const = 0;
};

}  // namespace dculab::engine
