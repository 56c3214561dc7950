// FP8 checkpoints with the GPU kernels, run on the host: the logits of the CPU engine, the tokens of transformers.
#include <filesystem>

#include "tests/engine/support/gpu_golden_steps.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

TEST_CASE("FP8 checkpoints on --device host-gpu: logits are the CPU engine's, greedy tokens those of transformers",
          "[gpu]") {
  int wave_size = 64;
  for (const char* const variant : {"block", "channel", "tensor"}) {
    const GoldenModel golden(variant, std::filesystem::path(DCULAB_SOURCE_DIR) / "tests/golden/fp8");
    const ModelWeights weights = load_weights(golden.folder());
    const std::vector<GoldenPrompt> prompts = golden.prompts();
    for (const Dtype activation : {Dtype::f32, Dtype::f16}) {
      INFO(variant << " " << name(activation));
      Stepper cpu(weights, {.kv_dtype = Dtype::f16});
      Stepper gpu(host_gpu(wave_size), weights,
                  {.kv_dtype = Dtype::f16, .activation_dtype = activation, .limits = kGoldenLimits});
      // As gpu_logits_test.cpp counts roundings.
      const double layers = weights.shape.num_layers();
      const double tolerance = (activation == Dtype::f32 ? 3 * layers + 1 : 11 * layers + 2) * 0x1p-11;
      std::vector<Feed> feeds;
      for (std::size_t i = 0; i < prompts.size(); ++i)
        feeds.push_back({static_cast<SequenceId>(i), Phase::prefill, prompts[i].tokens});
      for (std::size_t token = 0; token < (kSanitized ? 2 : prompts[0].greedy.size()); ++token) {
        const std::vector<Logits> rows = gpu.step(feeds);
        CHECK(relative_difference(rows, cpu.step(feeds)) <= tolerance);
        for (std::size_t i = 0; i < prompts.size(); ++i) {
          if (activation == Dtype::f32) CHECK(best_token(rows[i]) == prompts[i].greedy[token]);
          feeds[i] = {static_cast<SequenceId>(i), Phase::decode, {prompts[i].greedy[token]}};
        }
      }
    }
    wave_size = 96 - wave_size;
  }
}

}  // namespace
}  // namespace dculab::engine
