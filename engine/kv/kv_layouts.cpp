#include "engine/kv/kv_layouts.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "engine/checkpoint/model_weights.hpp"
#include "engine/kv/random_values.hpp"
#include "model/kv/kv_plans.hpp"
#include "model/plan_step.hpp"

namespace dculab::engine {
namespace {

// However many they are.
void require_equal_head_dims(const ModelShape& model) {
  for (const LayerKind& kind : model.kinds) {
    const auto heads = kind.cached_heads();
    if (!heads || heads->head_dim != model.heads().head_dim || kind.has_kv_heads() != model.kinds[0].has_kv_heads())
      throw InputError("the KV cache of " + model.name +
                       " would have layers of different heads, which is not supported");
  }
}

}  // namespace

void require_served(const ModelShape& model, const KvCacheOptions& options) {
  const KvLayout& layout = kv_layout(options.dtype);
  std::vector<std::string> reasons = clashes(options.kv(), KvFeature::each_other);
  std::ranges::move(kv_problems(options.kv(), model), std::back_inserter(reasons));
  if (!reasons.empty()) throw InputError(reasons.front());
  require_equal_head_dims(model);
  if (const std::string found = head_dim_problem(options.dtype, model.heads().head_dim); !found.empty())
    throw InputError(found);
  if (layout.require_sizes != nullptr) layout.require_sizes(model, options);
}

KvCacheOptions with_calibration(KvCacheOptions options, const ModelWeights& weights) {
  options.fp8_scales = weights.kv_scales;
  if (weights.kv_calibration && is_kv_format(options.dtype) && kv_format(options.dtype).needs_calibration)
    options.calibration = weights.kv_calibration();
  return options;
}

const KvLayout& kv_layout(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp8_e4m3:
    case Dtype::fp8_e5m2:
      return kFp8Layout;
    case Dtype::int8:
      return kInt8Layout;
    case Dtype::kivi4:
    case Dtype::kivi2:
      return kKiviLayout;
    case Dtype::kvquant4:
    case Dtype::kvquant3:
    case Dtype::kvquant2:
      return kKvQuantLayout;
    default:
      if (is_kv_format(dtype)) return kPlainLayout;
  }
  throw InputError("kv_cache_dtype " + std::string(name(dtype)) + " is not supported on the CPU; use one of " +
                   kv_format_names());
}

std::vector<KvPart> block_parts(std::size_t block_bytes, const KvLayerSize& layer, const KvCacheOptions& options) {
  const KvPart part{.block_bytes = block_bytes,
                    .size = block_bytes * static_cast<std::size_t>(options.num_blocks),
                    .heads = layer.num_kv_heads};
  return std::vector<KvPart>(layer.num_tensors, part);
}

std::vector<KvPart> parts_beside_blocks(const LayerKind& layer, const KvCacheOptions& options) {
  const auto bytes_beside_block = kv_policy_plan(options.policy).bytes_beside_block;
  if (bytes_beside_block == nullptr) return {};
  const auto bytes = static_cast<std::size_t>(bytes_beside_block(layer.gqa()).value());
  return {{.block_bytes = bytes, .size = bytes * static_cast<std::size_t>(options.num_blocks)}};
}

void fill_randomly(std::span<std::byte> memory, Dtype dtype, std::uint64_t seed) {
  const std::vector<std::byte> pattern = random_kv_values(dtype, seed);
  for (std::size_t offset = 0; offset < memory.size(); offset += pattern.size())
    std::memcpy(memory.data() + offset, pattern.data(), std::min(pattern.size(), memory.size() - offset));
}

}  // namespace dculab::engine
