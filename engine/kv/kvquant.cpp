// kvquant4, kvquant3 and kvquant2: codes of K and V, their outliers, scales of V and the calibration; attention is told
// how to rotate the keys that it reads.
#include <algorithm>

#include "core/error.hpp"
#include "engine/checkpoint/kv_calibration.hpp"
#include "engine/kv/cpu_kv_slice.hpp"
#include "engine/kv/kv_layouts.hpp"
#include "kernels/kv/kvquant.hpp"
#include "kernels/number_format.hpp"

namespace dculab::engine {
namespace {

class KvQuantSlice final : public CpuKvSlice {
 public:
  void begin(const StepPlan& /*plan*/, int /*block_size*/) override {}

  void bind(kernels::PagedAttentionArgs& args, Phase /*phase*/, const KeyRotation& rotation) const override {
    auto extras = args.cache.extras.as<kernels::KvQuantExtras>();
    extras.cos_sin = rotation.cos_sin;
    extras.rotary_dim = static_cast<std::int16_t>(rotation.rotary_dim);
    extras.neighbours = rotation.neighbours;
    args.cache.extras = extras;
  }
};

void require_kvquant_sizes(const ModelShape& model, const KvCacheOptions& options) {
  const std::string asked = "kv_cache_dtype " + std::string(name(options.dtype));
  for (const LayerKind& kind : model.kinds)
    if (kind.gqa().heads.kv_width() > kernels::kMostKvQuantWidth)
      throw InputError(asked + " serves at most " + std::to_string(kernels::kMostKvQuantWidth) +
                       " values of K a token and layer; use int8 or fp8_e4m3");
  if (options.calibration == nullptr)
    throw InputError(asked + " needs to know what K and V of " + model.name +
                     " are like: `dculab quantize --method none --kv-cache-dtype " + std::string(name(options.dtype)) +
                     "` writes a folder with its kv_cache.safetensors");
}

[[nodiscard]] int width_of(const KvLayerSize& layer) { return layer.num_kv_heads * layer.head_dim; }

// Codes of K and of V; their outliers; scales of V; the calibration.
std::vector<KvPart> kvquant_parts(const KvLayerSize& layer, const KvCacheOptions& options) {
  const std::size_t heads = layer.heads(options.block_size);
  const auto row_bytes = static_cast<std::size_t>(layer.head_dim * bits(options.dtype) / 8);
  std::vector<KvPart> parts = block_parts(heads * row_bytes, layer, options);
  const auto add = [&](int bytes_of_token) {
    const std::size_t bytes = static_cast<std::size_t>(bytes_of_token) * static_cast<std::size_t>(options.block_size);
    parts.push_back({.block_bytes = bytes, .size = bytes * static_cast<std::size_t>(options.num_blocks), .heads = 1});
  };
  const int outliers = kvquant_outliers(width_of(layer));
  for (int tensor = 0; tensor < 2; ++tensor) add(outliers * kKvQuantOutlierBytes);
  add(kKvQuantScaleBytes);
  const std::size_t numbers =
      4 * (std::size_t{1} << bits(options.dtype)) - 2 + 2 * static_cast<std::size_t>(width_of(layer));
  parts.push_back({.size = numbers * sizeof(float)});
  return parts;
}

kernels::KvExtras kvquant_extras(std::span<const std::span<std::byte>> parts, const KvCacheOptions& options,
                                 int layer) {
  const KvLayerCalibration& known = options.calibration->layers[static_cast<std::size_t>(layer)];
  const auto which =
      static_cast<std::size_t>(std::ranges::find(kCalibratedBits, bits(options.dtype)) - kCalibratedBits.begin());
  const KvCodebook &k = known.k[which], &v = known.v[which];
  const std::array all{&k.levels, &v.levels, &k.bounds, &v.bounds, &known.centres, &known.half_ranges};
  std::size_t numbers = 0;
  for (const std::vector<float>* values : all) numbers += values->size();
  if (numbers * sizeof(float) != parts[5].size()) throw InputError("kv_cache.safetensors is of a model of other heads");
  auto* const calibration = reinterpret_cast<float*>(parts[5].data());
  float* to = calibration;
  for (const std::vector<float>* values : all) to = std::ranges::copy(*values, to).out;
  return kernels::KvQuantExtras{.calibration = calibration,
                                .k_outliers = reinterpret_cast<kernels::KvQuantOutlier*>(parts[2].data()),
                                .v_outliers = reinterpret_cast<kernels::KvQuantOutlier*>(parts[3].data()),
                                .v_scales = reinterpret_cast<kernels::KvQuantScale*>(parts[4].data()),
                                .width = static_cast<int>(known.centres.size())};
}

kernels::KvExtras kvquant_of_heads(const kernels::KvCacheView& view, int first_kv_head) {
  auto extras = view.extras.as<kernels::KvQuantExtras>();
  extras.first_channel += first_kv_head * view.head_dim;
  return extras;
}

// Codes are random; outliers lie evenly over the channels.
void fill_kvquant(const kernels::KvCacheView& view, std::span<const std::span<std::byte>> parts, std::uint64_t seed) {
  for (const std::span<std::byte> codes : parts.first(2)) fill_randomly(codes, Dtype::int8, seed);
  const kernels::KvQuantLayout layout(view);
  const std::int64_t slots = std::int64_t{view.num_blocks} * view.block_size;
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    layout.extras.v_scales[slot] = {.centre = 0, .half_range = kernels::f16_from_f32(1.0F)};
    for (kernels::KvQuantOutlier* outliers : {layout.extras.k_outliers, layout.extras.v_outliers})
      for (int i = 0; i < layout.outliers; ++i)
        outliers[slot * layout.outliers + i] = {
            .channel = static_cast<std::uint16_t>(std::int64_t{i} * layout.extras.width / layout.outliers),
            .value = kernels::f16_from_f32(slot % 2 == 0 ? 0.75F : -0.75F)};
  }
}

}  // namespace

const KvLayout kKvQuantLayout{.require_sizes = require_kvquant_sizes,
                              .parts = kvquant_parts,
                              .extras = kvquant_extras,
                              .of_heads = kvquant_of_heads,
                              .fill_randomly = fill_kvquant};

std::unique_ptr<CpuKvSlice> make_kvquant_slice() { return std::make_unique<KvQuantSlice>(); }

}  // namespace dculab::engine
