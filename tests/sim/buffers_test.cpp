// What programs set aside beside weights, activations and KV.
#include <cmath>

#include "lower/gemm/kernels.hpp"
#include "sim/memory/capacity.hpp"
#include "tests/sim/machines.hpp"
#include "tests/sim/mixtures.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::sim::test {
namespace {

constexpr double kMebibyte = 1 << 20;

TEST_CASE("our engine sets aside what latents expand to, of models that have them") {
  EngineOptions options;
  options.weights = {Dtype::fp8_e4m3, 0};
  options.attention_split.partition_tokens = 0;
  const Capacity latents = capacity(mi50_like(), deepseek_like(), options, 1000);
  // 256 MiB of K and V, in whole blocks of 256 tokens; of a piece of 1024 tokens the latents and all heads' rows; and
  // the numbers of the blocks.
  const double block = 256.0 * (192 + 128) * 2;
  const double expanded = std::floor(256 * kMebibyte / block) * block;
  CHECK(latents.buffers.value() == expanded + 2.0 * 1024 * (576 + 128 * 256) + 4.0 * (1 << 16) / 256);
  CHECK(capacity(mi50_like(), llama_3_8b(), options, 1000).buffers == Bytes());

  // On a CPU a head of all tokens in F32 is more than 64 MiB; a piece has 256 tokens.
  const double head = 65536.0 * (192 + 128) * 4;
  CHECK(capacity(cpu_like(), deepseek_like(), options, 1000).buffers.value() == head + 4.0 * 256 * (576 + 128 * 256));
  Machine of_others = mi50_like();
  of_others.stack.kernels.matmul = {&lower::gemm::kRocblas};
  CHECK(capacity(of_others, deepseek_like(), options, 1000).buffers == Bytes());
}

TEST_CASE("partial results of attention take 256 MiB at most, or what one sequence needs") {
  EngineOptions options;
  options.attention_split.partition_tokens = 512;
  options.max_num_seqs = 2;
  // Of 32 heads and 16 partitions of 8192 tokens.
  CHECK(capacity(mi50_like(), llama_3_8b(), options, 1000).buffers.value() == 2.0 * 32 * 16 * (128 + 2) * 4);
  options.max_num_seqs = 4096;
  CHECK(capacity(mi50_like(), llama_3_8b(), options, 1000).buffers == Bytes(256 * kMebibyte));
}

TEST_CASE("copies of up-projections in 16 bits are held beside those in FP8, and not beside those in 16 bits") {
  Machine machine = a100_like();
  machine.stack.kernels.matmul = {&lower::gemm::kCublas};
  EngineOptions options;
  options.weights = {Dtype::fp8_e4m3, 0};
  const ModelShape model = deepseek_like();
  const Bytes without = capacity(machine, model, options, 1000).weights;
  CHECK(without == weight_footprint(model, options.weights));
  machine.stack.kernels.unfused.bytes_per_absorbed_weight = 2;
  CHECK((capacity(machine, model, options, 1000).weights - without).value() == 6 * 2.0 * 128 * 256 * 512);
  ModelShape wide = model;
  wide.quantization = std::nullopt;
  options.weights = {Dtype::bf16, 0};
  CHECK(capacity(machine, wide, options, 1000).weights == weight_footprint(wide, options.weights));
}

}  // namespace
}  // namespace dculab::sim::test
