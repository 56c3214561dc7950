// Golden models with experts on the GPU kernels, run on the host, beside the CPU engine.
#pragma once

#include <string>
#include <vector>

#include "engine/checkpoint/model_loader.hpp"
#include "tests/engine/support/golden_steps.hpp"
#include "tests/engine/support/small_gpu_model.hpp"
#include "tests/engine/support/wide_heads.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::engine {

inline constexpr GpuStepLimits kGoldenLimits{.max_num_batched_tokens = 256, .max_num_seqs = 8};

// Heads of 32 values, the smallest that the GPU kernels serve; latents as they are.
inline ModelWeights golden_weights(const std::string& variant) {
  const ModelWeights weights = load_weights(kFamilyFolder / variant);
  return weights.shape.has_latents() || weights.shape.heads().head_dim >= 32 ? weights : with_wide_heads(weights);
}

// All prompts in one step, then their golden continuations together. Where the same experts were chosen, logits are the
// CPU engine's within `tolerance`. Returns how many steps chose others.
inline int steps_of_other_experts(const GoldenModel& golden, const ModelWeights& weights, Dtype activation,
                                  int wave_size, double tolerance) {
  Stepper cpu(weights, {.kv_dtype = Dtype::f16});
  Stepper gpu(host_gpu(wave_size), weights,
              {.kv_dtype = Dtype::f16, .num_tokens = 512, .activation_dtype = activation, .limits = kGoldenLimits});
  const std::vector<GoldenPrompt> prompts = golden.prompts();
  const std::size_t steps = kSanitized ? 4 : prompts[0].greedy.size();
  int others = 0;
  std::vector<Feed> feeds(prompts.size());
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < prompts.size(); ++i)
      feeds[i] = step == 0 ? Feed{static_cast<SequenceId>(i), Phase::prefill, prompts[i].tokens}
                           : Feed{static_cast<SequenceId>(i), Phase::decode, {prompts[i].greedy[step - 1]}};
    const double difference = relative_difference(gpu.step(feeds), cpu.step(feeds));
    const ExpertHistogram got = gpu.executor().take_expert_histogram();
    const ExpertHistogram expected = cpu.executor().take_expert_histogram();
    CHECK(got.layer_steps == expected.layer_steps);
    if (got.choices != expected.choices)
      ++others;
    else
      CHECK(difference <= tolerance);
  }
  return others;
}

}  // namespace dculab::engine
