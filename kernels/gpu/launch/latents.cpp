#include <string>

#include "kernels/gpu/latents/absorb.hip.hpp"
#include "kernels/gpu/latents/expansion.hip.hpp"
#include "kernels/gpu/latents/latent_attention.hip.hpp"
#include "kernels/gpu/launch/cache_type.hpp"
#include "kernels/gpu/launch/dispatch.hpp"
#include "kernels/gpu/launch/start.hpp"

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {
namespace {

void require_latents(const LatentSizes& sizes, const KvCacheView& cache) {
  require_dtype("a cache of latents", cache.dtype, {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2});
  if (!is_supported_latent(cache.dtype, sizes.kv_lora_rank, sizes.latent_width()))
    throw InputError("latents of " + std::to_string(sizes.kv_lora_rank) + " values with keys of " +
                     std::to_string(sizes.qk_rope_head_dim) + " in " + std::string(name(cache.dtype)) +
                     " have no GPU kernel; there is one for up to " + std::to_string(kMostLatentRank) +
                     " values, with the key up to " + std::to_string(kMostLatentWidth) + " and a multiple of " +
                     std::to_string(128 / bits(cache.dtype)));
  if (cache.num_kv_heads != 1 || cache.head_dim != sizes.latent_width())
    throw InputError("a cache of " + std::to_string(cache.num_kv_heads) + " KV heads of " +
                     std::to_string(cache.head_dim) + " values has no GPU kernel of latents; there is one for 1 of " +
                     std::to_string(sizes.latent_width()));
  require_aligned("the cache of latents", cache.k);
}

// The partitions' share of each row as those of paged attention with heads of kv_lora_rank values.
[[nodiscard]] PagedAttentionLaunch partitions_of(const LatentAttentionLaunch& launch) {
  const LatentAttention& args = launch.args;
  PagedAttentionLaunch combined;
  combined.args.cache.head_dim = args.sizes.kv_lora_rank;
  combined.args.context_lens = args.context_lens;
  combined.args.out = args.out;
  combined.args.num_seqs = args.num_seqs;
  combined.args.num_heads = args.sizes.num_heads;
  combined.args.partition_tokens = args.partition_tokens;
  combined.args.workspace = args.workspace;
  combined.args.queries = args.queries;
  combined.partitions = launch.partitions;
  combined.output_scale = launch.output_scale;
  return combined;
}

void require_multiples(const char* what, const LatentSizes& sizes) {
  for (const int size : {sizes.qk_nope_head_dim, sizes.qk_rope_head_dim, sizes.v_head_dim})
    require_multiple(what, "values of a part of a head", size, kWide);
  require_multiple(what, "values of a latent", sizes.kv_lora_rank, kWide);
}

void require_absorbed(const char* what, const Absorb& args) {
  require_multiples(what, args.sizes);
  require_activation(std::string("the input of ") + what, args.x.dtype);
  require_activation(std::string("the result of ") + what, args.y.dtype);
  require_matrix(std::string("the weights of ") + what, args.kv_b_proj.dtype, args.scales);
  require_aligned(std::string("the weights of ") + what, args.kv_b_proj.data);
  require_aligned(std::string("the input of ") + what, args.x.data);
  require_multiple(what, "values between tokens", static_cast<int>(args.x_stride), kWide);
}

template <typename Function>
void with_absorb_rows(const Absorb& args, Function function) {
  const int rows = absorb_rows(args.num_tokens);
  with_count<1, 2, 4, kAbsorbRows>(
      rows, [&]<int kRows>() { function.template operator()<kRows>(ceiling_quotient(args.num_tokens, kRows)); });
}

}  // namespace

void start(Stream& stream, const LatentAttention& args) {
  require_latents(args.sizes, args.cache);
  require_activation("the query of attention over latents", args.q.dtype);
  require_activation("the result of attention over latents", args.out.dtype);
  require_aligned("the query of attention over latents", args.q.data);
  require_aligned("the workspace of attention over latents", args.workspace);
  const bool is_scaled = bits(args.cache.dtype) == 8;
  LatentAttentionLaunch launched{.args = args};
  const float scale = is_scaled ? args.cache.extras.as<Fp8KvScales>().k : 1.0F;
  launched.score_scale = args.scale * scale;
  launched.output_scale = scale;
  launched.partitions = paged_attention_partitions(args.max_context_len, args.partition_tokens);
  if (launched.partitions > 1 && args.workspace == nullptr)
    throw InputError("attention over latents on the GPU: two passes need a workspace; see paged_attention_workspace()");
  const int tiles =
      ceiling_quotient(args.queries.max_tokens_per_seq * args.sizes.num_heads, latent_rows(args.cache.dtype));
  if (tiles == 0 || args.num_seqs == 0) return;
  with_cache_type(args.cache.dtype, [&]<typename Cache>() {
    with_wave_size(stream, [&]<int kWave>() {
      launch(stream, {.x = tiles, .y = args.num_seqs, .z = launched.partitions, .threads = kLatentThreads},
             latent_attention_kernel<kWave, Cache>, launched);
    });
  });
  if (launched.partitions > 1) start(stream, partitions_of(launched));
}

void start(Stream& stream, const GatherLatents& args) {
  require_activation("gathered latents", args.out.dtype);
  require_multiple("gather_latents", "values of a latent and its key", args.cache.head_dim, kWide);
  require_aligned("the cache of latents", args.cache.k);
  if (args.end <= args.begin) return;
  const int threads = std::min(kExpansionThreads, ceiling_quotient(args.cache.head_dim / kWide, 64) * 64);
  with_cache_type(args.cache.dtype, [&]<typename Stored>() {
    launch(stream, {.x = args.end - args.begin, .threads = threads}, gather_latents_kernel<Stored>, args);
  });
}

void start(Stream& stream, const StoreExpanded& args) {
  require_dtype("expanded K and V", args.cache.dtype, {Dtype::f16});
  require_activation("what latents expand to", args.expanded.dtype);
  require_activation("gathered latents", args.latents.dtype);
  require_multiples("store_expanded", args.sizes);
  if (args.num_tokens == 0) return;
  with_wave_size(stream, [&]<int kWave>() {
    launch(stream, {.x = args.num_tokens, .threads = kExpansionThreads}, store_expanded_kernel<kWave>, args);
  });
}

void start_absorb_k(Stream& stream, const Absorb& args) {
  require_absorbed("absorb_k", args);
  if (args.sizes.kv_lora_rank > kMostLatentRank)  // a workgroup has a whole row of the result
    throw InputError("absorb_k of latents of " + std::to_string(args.sizes.kv_lora_rank) +
                     " values has no GPU kernel; there is one for up to " + std::to_string(kMostLatentRank));
  if (args.num_tokens == 0) return;
  with_formats(Dtype::f32, args.kv_b_proj.dtype, [&]<typename X, typename W>() {
    with_absorb_rows(args, [&]<int kRows>(int tiles) {
      launch(stream, {.x = args.sizes.num_heads, .y = tiles, .threads = kAbsorbThreads}, absorb_k_kernel<kRows, W>,
             args);
    });
  });
}

void start_absorb_v(Stream& stream, const Absorb& args) {
  require_absorbed("absorb_v", args);
  if (args.num_tokens == 0) return;
  with_wave_size(stream, [&]<int kWave>() {
    const int columns = ceiling_quotient(args.sizes.v_head_dim, kGemvThreads / kWave * kGemvColumns);
    with_formats(args.x.dtype, args.kv_b_proj.dtype, [&]<typename X, typename W>() {
      with_absorb_rows(args, [&]<int kRows>(int tiles) {
        launch(stream, {.x = args.sizes.num_heads, .y = tiles, .z = columns, .threads = kGemvThreads},
               absorb_v_kernel<kWave, kRows, X, W>, args);
      });
    });
  });
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
