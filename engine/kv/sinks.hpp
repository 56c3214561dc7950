// StreamingLLM's attention sinks: the first keys of each sequence move along with its window.
//
// Xiao et al. (arXiv:2309.17453) give tokens their positions within the cache. Rotary embedding sees differences only,
// so when e tokens have been dropped between sinks and window it is enough to rotate the few sinks to position i + e
// and to leave the window alone. Their keys are kept as they were before any rotation, so that roundings do not add up.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/batch.hpp"
#include "core/kv/retention.hpp"
#include "engine/kv/cpu_kv_slice.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

class SinkKeys final : public CpuKvSlice {
 public:
  explicit SinkKeys(const ModelShape& shape);

  // Throws std::invalid_argument when a sequence's sinks have to move but were never seen.
  void begin(const StepPlan& plan, int block_size) override;

  // Keeps the sinks among the new tokens.
  void before_cache(kernels::RopeAndCacheArgs& args, int layer) override { keep(layer, args.qkv); }

  // shift_sink_keys: writes those that move to the slots at the front of their block tables, rotated to their new
  // positions.
  void execute(const Op& op, const CpuKvLayer& layer) override;

  void forget(SequenceId id) override { kept_.erase(id); }

  // For tests: what is kept of all sequences.
  [[nodiscard]] std::size_t bytes() const {
    std::size_t values = 0;
    for (const auto& [id, rows] : kept_) values += rows.size();
    return sizeof(float) * values;
  }

  // Sequences whose sinks were never seen have zeros for them.
  void make_up_unseen() override { makes_up_ = true; }

 private:
  using Rows = std::vector<float>;  // [num_layers, sink_tokens, 2 * kv_width]: K not rotated, V

  // New tokens that are sinks: rows of qkv and where they go.
  struct Arrival {
    float* to = nullptr;  // of layer 0
    int first_token = 0;  // of the step
    int count = 0;
  };

  [[nodiscard]] std::size_t num_kept_values() const {
    return static_cast<std::size_t>(num_layers_) * static_cast<std::size_t>(sink_tokens_) *
           static_cast<std::size_t>(2 * kv_width_);
  }
  // Sinks that move in this step, of all sequences.
  [[nodiscard]] int num_moving() const { return static_cast<int>(positions_.size()); }
  void keep(int layer, const float* qkv);  // [num_tokens, query_width + 2 * kv_width], not rotated yet
  void add_arrival(const SequenceSlice& slice, int first_token);
  void add_move(const SequenceSlice& slice, const std::vector<BlockId>& blocks, int block_size);

  int num_layers_, query_width_, kv_width_;
  Position position_;
  int sink_tokens_ = 0;
  bool makes_up_ = false;
  std::map<SequenceId, Rows> kept_;

  // Of this step.
  std::vector<Arrival> arrivals_;
  std::vector<const float*> moving_;     // [sequences that move]: their rows of layer 0
  std::vector<std::int32_t> positions_;  // [num_moving()]
  std::vector<std::int64_t> slots_;      // [num_moving()]
  std::vector<float> rows_;              // [num_moving(), 2 * kv_width]
  std::vector<float> no_rotation_;       // [head_dim]: cosines 1, sines 0
};

}  // namespace dculab::engine
