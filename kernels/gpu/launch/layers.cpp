#include "kernels/gpu/layers/layers.hip.hpp"

#include "kernels/gpu/launch/start.hpp"
#include "kernels/gpu/launch/supported.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {
namespace {

int pieces(int count) { return (count + kLayerPiece - 1) / kLayerPiece; }
int pieces_of(std::int64_t count) { return static_cast<int>((count + kLayerPiece - 1) / kLayerPiece); }

}  // namespace

void start(Stream& stream, const Embedding& args) {
  require_weight("an embedding table", args.table.dtype);
  require_activation("the result of an embedding", args.out.dtype);
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, {.x = args.num_tokens, .y = pieces(args.width), .threads = kLayerThreads}, embedding_kernel<kWave>,
           args);
  });
}

void start(Stream& stream, const RotaryEmbedding& args) {
  require_activation("a rotary embedding", args.qkv.dtype);
  if (args.head_dim % 2 != 0)
    throw InputError("a rotary embedding of heads of " + std::to_string(args.head_dim) +
                     " has no GPU kernel; the head size must be even");
  const int pairs = (args.num_heads + args.num_kv_heads) * args.head_dim / 2;
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, {.x = args.num_tokens, .y = pieces(pairs), .threads = kLayerThreads}, rotary_embedding_kernel<kWave>,
           args);
  });
}

void start(Stream& stream, const PartRotaryEmbedding& given) {
  PartRotaryEmbedding args = given;
  if (args.stride == 0) args.stride = std::int64_t{args.num_heads + 2 * args.num_kv_heads} * args.head_dim;
  require_activation("a rotary embedding", args.qkv.dtype);
  if (args.rotary_dim % 2 != 0 || args.rotary_dim > args.head_dim)
    throw InputError("a rotary embedding of " + std::to_string(args.rotary_dim) + " values of heads of " +
                     std::to_string(args.head_dim) + " has no GPU kernel; the part must be even and within the head");
  const int pairs = (args.num_heads + args.num_kv_heads) * args.rotary_dim / 2;
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, {.x = args.num_tokens, .y = (pairs + kLayerThreads - 1) / kLayerThreads, .threads = kLayerThreads},
           part_rotary_embedding_kernel<kWave>, args);
  });
}

void start(Stream& stream, const ResidualAdd& args) {
  require_activation("what is added to the residual", args.x.dtype);
  require_activation("the result of residual_add", args.out.dtype);
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, {.x = pieces_of(args.count), .threads = kLayerThreads}, residual_add_kernel<kWave>, args);
  });
}

void start(Stream& stream, const SoftCap& args) {
  require_activation("what soft_cap caps", args.x.dtype);
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, {.x = pieces_of(args.count), .threads = kLayerThreads}, soft_cap_kernel<kWave>, args);
  });
}

void start(Stream& stream, const GeluAndMul& args) {
  require_activation("the input of gelu_and_mul", args.gate_up.dtype);
  require_activation("the result of gelu_and_mul", args.out.dtype);
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, {.x = args.num_tokens, .y = pieces(args.width), .threads = kLayerThreads},
           gelu_and_mul_kernel<kWave>, args);
  });
}

void start(Stream& stream, const SiluAndMul& args) {
  require_activation("the input of silu_and_mul", args.gate_up.dtype);
  require_activation("the result of silu_and_mul", args.out.dtype);
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, {.x = args.num_tokens, .y = pieces(args.width), .threads = kLayerThreads},
           silu_and_mul_kernel<kWave>, args);
  });
}

void start(Stream& stream, const Gelu& args) {
  require_activation("the input of gelu", args.x.dtype);
  require_activation("the result of gelu", args.out.dtype);
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, {.x = pieces_of(args.count), .threads = kLayerThreads}, gelu_kernel<kWave>, args);
  });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
