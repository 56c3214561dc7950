// Attention sinks on the GPU: kept as they came, and written as the reference rotates and writes them.
#include "kernels/gpu/kv/sinks.hpp"

#include "tests/kernels/gpu/device_under_test.hpp"
#include "tests/kernels/paged_sequences.hpp"

namespace dculab::kernels::gpu {
namespace {

struct SinkCase {
  int heads, head_dim, rotary_dim, block_size;
  bool neighbours = false, rotates = true;
};

constexpr SinkCase kCases[] = {{1, 8, 8, 1},      {3, 80, 80, 16},      {5, 128, 128, 7},
                               {2, 64, 32, 4},    {2, 24, 12, 4},       {3, 80, 40, 16, true},
                               {9, 256, 256, 32}, {4, 32, 32, 4, true}, {3, 40, 40, 4, false, false}};

constexpr int kSinks = 5, kPositions = 50, kShiftedLayer = 2;

// Every byte of V and of the formats below 16 bits; of K in 16 bits values, which roundings of the rotation move.
void check_cache(const CacheMemory& expected, const DeviceTensor& k, const DeviceTensor& v) {
  CHECK(v.read<std::uint16_t>() == expected.v);
  const auto actual = k.read<std::byte>();
  const auto* const wanted = reinterpret_cast<const std::byte*>(expected.k.data());
  const Dtype dtype = expected.view.dtype;
  const std::size_t values = actual.size() * 8 / static_cast<std::size_t>(bits(dtype));
  // Products and sums in f32 where the reference has doubles, of values up to about 4: another neighbour at most.
  const double step = dtype == Dtype::f16 ? 0x1p-10 : dtype == Dtype::bf16 ? 0x1p-7 : 0x1p-2;
  for (std::size_t i = 0; i < values; ++i) {
    const double a = reference::load_value(actual.data(), dtype, i), b = reference::load_value(wanted, dtype, i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (!(std::abs(a - b) <= step * std::abs(b) + 1e-6)) FAIL_CHECK("value " << i << ": " << a << " for " << b);
  }
}

// Codes of K may be the neighbours', and scales are off by roundings; where nothing was written all are NaN.
void check_codes(const CacheMemory& expected, const DeviceTensor& k, const DeviceTensor& k_scales,
                 const DeviceTensor& v_scales) {
  const auto codes = k.read<std::int8_t>();
  const auto* const wanted = reinterpret_cast<const std::int8_t*>(expected.k.data());
  int largest = 0;
  for (std::size_t i = 0; i < codes.size(); ++i) largest = std::max(largest, std::abs(codes[i] - wanted[i]));
  CHECK(largest <= 1);
  const auto of_k = k_scales.read<float>(), of_v = v_scales.read<float>();
  for (std::size_t i = 0; i < of_k.size(); ++i) {
    if (std::isnan(expected.k_scales[i]) && std::isnan(of_k[i]) && std::isnan(of_v[i])) continue;
    if (!(std::abs(of_k[i] / expected.k_scales[i] - 1) <= 0x1p-20 && of_v[i] == expected.v_scales[i]))
      FAIL_CHECK("scales of row " << i << ": " << of_k[i] << " for " << expected.k_scales[i]);
  }
}

// What the device's cache must hold: the rows of the sinks, [kSinks, width], rotated and written by the reference.
void write_rows(std::vector<float> rows, const std::vector<std::int32_t>& positions,
                const std::vector<std::int64_t>& slots, const std::vector<float>& cos_sin, const SinkCase& shape,
                const KvCacheView& cache) {
  reference::rope_and_cache({.qkv = rows.data(),
                             .positions = positions.data(),
                             .slot_mapping = slots.data(),
                             .cos_sin = shape.rotates ? cos_sin.data() : nullptr,
                             .cache = cache,
                             .num_tokens = kSinks,
                             .num_heads = 0,
                             .rotary_dim = shape.rotary_dim,
                             .neighbours = shape.neighbours});
}

void check_shift(Device& device, const SinkCase& shape, Dtype dtype) {
  TensorSource source(7);
  const int width = 2 * shape.heads * shape.head_dim;
  std::vector<std::vector<float>> kept;  // of each sink, of all layers
  for (int sink = 0; sink < kSinks; ++sink)
    kept.push_back(source.floats(static_cast<std::size_t>((kShiftedLayer + 1) * width)));
  std::vector<float> rows;
  for (const auto& each : kept) rows.insert(rows.end(), each.begin() + kShiftedLayer * width, each.end());
  const auto cos_sin = source.floats(static_cast<std::size_t>(kPositions * shape.rotary_dim), 0.7F);
  const std::vector<std::int32_t> positions{0, 49, 3, 3, 17};
  const std::vector<std::int64_t> slots{6, 0, 13, 9, 2};
  CacheMemory expected(dtype, 2 + 16 / shape.block_size, shape.heads, shape.block_size, shape.head_dim);
  write_rows(rows, positions, slots, cos_sin, shape, expected.view);
  const DeviceTensor k(device, expected.k.size() * 2), v(device, expected.k.size() * 2);
  std::vector<std::unique_ptr<DeviceTensor>> tensors;
  std::vector<const float*> pointers;
  for (const auto& each : kept) {
    tensors.push_back(std::make_unique<DeviceTensor>(device, each));
    pointers.push_back(tensors.back()->as<float>());
  }
  const DeviceTensor from(device, pointers), position(device, positions), slot(device, slots), angles(device, cos_sin);
  KvCacheView view = expected.view;
  view.k = k.as(), view.v = v.as();
  const DeviceTensor k_scales(device, expected.k_scales.size() * sizeof(float));
  const DeviceTensor v_scales(device, expected.k_scales.size() * sizeof(float));
  if (dtype == Dtype::int8) view.extras = Int8KvScales{.k = k_scales.as<float>(), .v = v_scales.as<float>()};
  device.shift_sink_keys({.kept = from.as<const float*>(),
                          .first_kept = kShiftedLayer * width,
                          .positions = position.as<std::int32_t>(),
                          .slots = slot.as<std::int64_t>(),
                          .cos_sin = shape.rotates ? angles.as<float>() : nullptr,
                          .cache = view,
                          .num_tokens = kSinks,
                          .rotary_dim = shape.rotary_dim,
                          .neighbours = shape.neighbours});
  if (dtype != Dtype::int8) return check_cache(expected, k, v);
  CHECK(v.read<std::uint16_t>() == expected.v);
  check_codes(expected, k, k_scales, v_scales);
}

}  // namespace

TEST_CASE("GPU attention sinks are written as the reference rotates and writes them", "[gpu]") {
  const auto dtype = GENERATE(Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3, Dtype::fp8_e5m2, Dtype::int8);
  for (const SinkCase& shape : kCases) {
    CAPTURE(name(dtype), shape.heads, shape.head_dim, shape.rotary_dim, shape.neighbours, shape.rotates);
    for_each_device([&](Device& device) { check_shift(device, shape, dtype); });
  }
}

TEST_CASE("GPU attention sinks are kept as they come", "[gpu]") {
  const auto dtype = GENERATE(Dtype::f16, Dtype::f32);
  const int width = GENERATE(16, 48, 2 * 9 * 256);
  CAPTURE(name(dtype), width);
  const int stride = width + 24;
  TensorSource source(9);
  const auto kv = source.stored(static_cast<std::size_t>(6 * stride), dtype);
  const auto wide = widen(kv, dtype);
  const std::vector<std::int32_t> tokens{4, 0, 5};
  for_each_device([&](Device& device) {
    const DeviceTensor values(device, kv), which(device, tokens);
    const DeviceTensor kept(device, sizeof(float) * static_cast<std::size_t>(3 * 2 * width));
    std::vector<float*> places;
    for (int sink = 0; sink < 3; ++sink) places.push_back(kept.as<float>() + sink * 2 * width);
    const DeviceTensor where(device, places);
    device.keep_sink_keys({.kv = {values.as(), dtype},
                           .stride = stride,
                           .tokens = which.as<std::int32_t>(),
                           .kept = where.as<float*>(),
                           .first_kept = width,
                           .num_tokens = 3,
                           .width = width});
    const auto actual = kept.read<float>();
    for (int sink = 0; sink < 3; ++sink) {
      const auto first = actual.begin() + sink * 2 * width;
      CHECK(std::all_of(first, first + width, [](float value) { return std::isnan(value); }));
      CHECK(
          std::equal(first + width, first + 2 * width, wide.begin() + tokens[static_cast<std::size_t>(sink)] * stride));
    }
  });
}

TEST_CASE("GPU kernels of attention sinks refuse what they are not compiled for", "[gpu]") {
  for_each_device([&](Device& device) {
    const DeviceTensor memory(device, 64);
    ShiftSinkKeys args{.num_tokens = 1, .rotary_dim = 20};
    args.cache = {.k = memory.as(), .v = memory.as(), .num_kv_heads = 1, .block_size = 1, .head_dim = 20};
    CHECK_THROWS_WITH(device.shift_sink_keys(args), ContainsSubstring("20") && ContainsSubstring("multiple of 8"));
    args.cache.head_dim = 16;
    CHECK_THROWS_WITH(device.shift_sink_keys(args), ContainsSubstring("20 values of heads of 16"));
    args.rotary_dim = 16, args.cache.dtype = Dtype::kivi4;
    CHECK_THROWS_WITH(device.shift_sink_keys(args), ContainsSubstring("kivi4"));
    KeepSinkKeys kept{.kv = {memory.as(), Dtype::bf16}, .stride = 16, .num_tokens = 1, .width = 16};
    CHECK_THROWS_WITH(device.keep_sink_keys(kept), ContainsSubstring("bf16"));
    kept.kv.dtype = Dtype::f16, kept.stride = 17;
    CHECK_THROWS_WITH(device.keep_sink_keys(kept), ContainsSubstring("17 values between tokens"));
  });
}

}  // namespace dculab::kernels::gpu
