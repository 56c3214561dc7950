// The choices of the tokens of a step on the device, allocated once for the largest step, and what the host learns of
// them after it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/expert_histogram.hpp"
#include "engine/memory/device_memory.hpp"
#include "kernels/gpu/expert_args.hpp"
#include "model/model_shape.hpp"

namespace dculab::engine {

class GpuExpertRouting {
 public:
  // Nothing is allocated for a model without experts.
  GpuExpertRouting(const std::shared_ptr<kernels::gpu::Device>& device, const ModelShape& shape, int most_tokens);

  // Device memory that is allocated.
  [[nodiscard]] static Bytes memory(const ModelShape& shape, int most_tokens);

  // Before the layers of a step.
  void begin_step();

  // What a layer's router is told, but for its logits and its correction bias. `weights`: of the layer's experts.
  [[nodiscard]] kernels::gpu::RouteTokens route(const Experts& experts, int layer, int tokens, Dtype weights) const;

  // That the layer's router runs in this step.
  void expect(int layer) { is_expected_[static_cast<std::size_t>(layer)] = true; }

  // The rows that the layer's router has made; those of the first product are gathered from rows of tokens.
  [[nodiscard]] kernels::gpu::ExpertRows rows(const kernels::gpu::RouteTokens& routed, bool gathers) const;

  // The weight of what the shared experts give, before its sigmoid: [tokens].
  [[nodiscard]] float* shared_gate() const { return shared_gate_.as<float>(); }

  // Once all layers have run: waits, and counts what was chosen in those that were expected. Throws InputError for a
  // router whose logits are not finite.
  void end_step();

  // What was counted since the last call.
  [[nodiscard]] ExpertHistogram take_histogram();

 private:
  std::shared_ptr<kernels::gpu::Device> device_;
  const ModelShape& shape_;
  int first_rows_stride_ = 0;                                          // values of a layer
  DeviceMemory experts_, choice_rows_, row_tokens_, weights_, tiles_;  // [most rows]
  DeviceMemory is_bad_, shared_gate_;                                  // [most tokens]
  DeviceMemory first_rows_;                                            // [layers, the most experts of one + 1]
  DeviceMemory bad_tokens_;                                            // [layers]
  std::vector<std::int32_t> host_first_rows_, host_bad_tokens_;
  std::vector<bool> is_expected_;  // [layers]
  ExpertHistogram histogram_;
};

}  // namespace dculab::engine
