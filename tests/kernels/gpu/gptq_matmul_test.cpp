// Do the GPU's GPTQ kernels agree with the reference, repeat bit for bit, and load each weight once?
#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.hpp"
#include "kernels/gpu/matmul/gptq_layout.hpp"
#include "kernels/number_format.hpp"
#include "kernels/reference/reference_kernels.hpp"
#include "lower/dculab_gpu/gptq_plan.hpp"
#include "tests/kernels/gpu/device_under_test.hpp"
#include "tests/kernels/gpu/weight_loads.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels::gpu {
namespace {

enum class Rows : std::uint8_t { in_order, act_order };
enum class Zeros : std::uint8_t { random, symmetric };
enum class GptqWorkspace : std::uint8_t { given, none };

struct GptqShape {
  int m, n, k, group_size;
  int zero_offset = 1;
  Rows rows = Rows::in_order;
  Zeros zeros = Zeros::random;
  GptqWorkspace workspace = GptqWorkspace::given;
};

// A random matrix as a checkpoint stores it.
class StoredMatrix {
 public:
  StoredMatrix(TensorSource& source, const GptqShape& shape) {
    const auto groups = static_cast<std::size_t>(shape.k / shape.group_size), n = static_cast<std::size_t>(shape.n);
    const auto random_word = [&] { return static_cast<std::uint32_t>(source.engine()()); };
    const std::uint32_t symmetric = shape.zero_offset == 1 ? 0x77777777U : 0x88888888U;
    qweight.resize(static_cast<std::size_t>(shape.k) / 8 * n);
    qzeros.assign(groups * n / 8, symmetric);
    scales.resize(groups * n);
    std::generate(qweight.begin(), qweight.end(), random_word);
    if (shape.zeros == Zeros::random) std::generate(qzeros.begin(), qzeros.end(), random_word);
    for (auto& scale : scales) scale = f16_from_f32(0.001F * static_cast<float>(source.integer(5, 15)));
    view = {qweight.data(), qzeros.data(), scales.data(),    nullptr,
            shape.k,        shape.n,       shape.group_size, shape.zero_offset};
    if (shape.rows == Rows::in_order) return;
    for (int k = 0; k < shape.k; ++k) g_idx.push_back(k / shape.group_size);
    std::shuffle(g_idx.begin(), g_idx.end(), source.engine());
    view.g_idx = g_idx.data();
  }

  std::vector<std::uint32_t> qweight, qzeros;
  std::vector<std::uint16_t> scales;
  std::vector<std::int32_t> g_idx;
  GptqWeightView view;
};

// The same on a device, rows sorted by group.
class DeviceMatrix {
 public:
  DeviceMatrix(Device& device, const StoredMatrix& stored)
      : layout_(sort_by_group(stored.view)),
        qweight(device, layout_.qweight.empty() ? stored.qweight : layout_.qweight, OperandRole::weight),
        qzeros(device, stored.qzeros),
        scales(device, stored.scales),
        x_perm(device, layout_.x_perm),
        view(stored.view) {
    view.qweight = qweight.as<std::uint32_t>(), view.qzeros = qzeros.as<std::uint32_t>();
    view.scales = scales.as<std::uint16_t>(), view.g_idx = nullptr;
  }
  [[nodiscard]] const std::int32_t* permutation() const {
    return layout_.x_perm.empty() ? nullptr : x_perm.as<std::int32_t>();
  }

 private:
  GptqLayout layout_;

 public:
  DeviceTensor qweight, qzeros, scales, x_perm;
  GptqWeightView view;
};

// sum over k of |x * weight| for each value of y.
std::vector<double> magnitudes(const std::vector<float>& x, const GptqWeightView& weight, int m) {
  std::vector<double> sums(static_cast<std::size_t>(m) * static_cast<std::size_t>(weight.out_features));
  for (int n = 0; n < weight.out_features; ++n)
    for (int k = 0; k < weight.in_features; ++k) {
      const double value = std::abs(reference::gptq_weight(weight, k, n));
      for (int row = 0; row < m; ++row)
        sums[static_cast<std::size_t>(row * weight.out_features + n)] +=
            value * std::abs(x[static_cast<std::size_t>(row * weight.in_features + k)]);
    }
  return sums;
}

// Error relative to the sum of magnitudes: of the longest chain of f32 roundings that a product can pass, and in the
// half GEMM of rounding each weight, scale * (q - zero), to a half.
double relative_error(const GptqShape& shape, Dtype activation) {
  const GptqPlan plan = plan_gptq_matmul(shape.m, shape.n, shape.k);
  // GEMV: 8 products of a word; then the words of a lane; then up to 6 steps in the wave, 8 waves, and the parts.
  const int words = (plan.split.k_per_part / kGptqRound + 1) * (kGptqChunk / 8);
  if (plan.is_gemv()) return (8 + words + 6 + 8 + plan.split.parts) * 0x1p-24;
  return (shape.k + plan.split.parts) * 0x1p-24 + (activation == Dtype::f16 ? 0x1p-11 : 0.0);
}

// The bytes of y [m, n + 3], which must be the same a second time.
std::vector<std::byte> multiply_twice(Device& device, const StoredMatrix& stored, const GptqShape& shape,
                                      const std::vector<std::byte>& x, Dtype x_dtype, Dtype y_dtype) {
  const DeviceMatrix matrix(device, stored);
  const DeviceTensor device_x(device, x);
  const auto m = static_cast<std::size_t>(shape.m), stride = static_cast<std::size_t>(shape.n) + 3;
  std::vector<std::byte> first;
  for (int run = 0; run < 2; ++run) {
    const DeviceTensor y(device, bytes_of(y_dtype, m * stride));
    const DeviceTensor workspace(device, sizeof(float) * gptq_matmul_workspace(shape.m, shape.n, shape.k));
    device.gptq_matmul({.x = {device_x.as(), x_dtype},
                        .weight = matrix.view,
                        .x_perm = matrix.permutation(),
                        .y = {y.as(), y_dtype},
                        .m = shape.m,
                        .y_stride = static_cast<int>(stride),
                        .workspace = shape.workspace == GptqWorkspace::given ? workspace.as<float>() : nullptr});
    const auto bytes = y.read<std::byte>();
    if (run == 1) REQUIRE(bytes == first);
    first = bytes;
  }
  return first;
}

void check_parity(const GptqShape& shape, Dtype x_dtype, Dtype y_dtype) {
  CAPTURE(shape.m, shape.n, shape.k, shape.group_size, shape.zero_offset, static_cast<int>(shape.rows), name(x_dtype),
          name(y_dtype));
  TensorSource source(11);
  const StoredMatrix stored(source, shape);
  const auto x = source.stored(static_cast<std::size_t>(shape.m) * static_cast<std::size_t>(shape.k), x_dtype);
  const auto wide_x = widen(x, x_dtype);
  const auto n = static_cast<std::size_t>(shape.n), count = static_cast<std::size_t>(shape.m) * n;
  std::vector<float> expected(count);
  reference::gptq_matmul({wide_x.data(), stored.view, expected.data(), shape.m});
  const auto sums = magnitudes(wide_x, stored.view, shape.m);
  const double error = relative_error(shape, x_dtype);

  std::map<int, std::vector<std::byte>> by_wave_size;
  for_each_device([&](Device& device) {
    const auto y = multiply_twice(device, stored, shape, x, x_dtype, y_dtype);
    const auto got = widen(y, y_dtype);
    std::size_t wrong = 0, overwritten = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::size_t row = i / (n + 3), column = i % (n + 3);
      if (column >= n) {
        if (!std::isnan(got[i])) ++overwritten;
        continue;
      }
      const double wanted = expected[row * n + column];
      // 2^-25: half of the last bit of a half below 2^-14.
      const double allowed = error * sums[row * n + column] + rounding(y_dtype) * std::abs(wanted) + 0x1p-25;
      if (!(std::abs(got[i] - wanted) <= allowed)) ++wrong;
    }
    CHECK(wrong == 0);
    CHECK(overwritten == 0);
    const auto seen = by_wave_size.try_emplace(device.info().wave_size, y);
    CHECK(seen.first->second == y);  // whatever the order of lanes
  });
}

// One launch, without split k.
AddressTrace trace_of(const GptqShape& shape, int wave_size) {
  TensorSource source(5);
  const StoredMatrix stored(source, shape);
  host::AddressRecorder recorder;
  const auto device = open_host_device({.wave_size = wave_size, .recorder = &recorder});
  const DeviceMatrix matrix(*device, stored);
  const DeviceTensor x(*device, source.stored(static_cast<std::size_t>(shape.m * shape.k), Dtype::f16));
  const DeviceTensor y(*device, bytes_of(Dtype::f16, static_cast<std::size_t>(shape.m * shape.n)));
  device->gptq_matmul({.x = {x.as(), Dtype::f16},
                       .weight = matrix.view,
                       .x_perm = matrix.permutation(),
                       .y = {y.as(), Dtype::f16},
                       .m = shape.m,
                       .y_stride = shape.n});
  return recorder.take("gptq");
}

// Instructions of all waves that touch the buffer.
std::size_t instructions_on(const AddressTrace& trace, const TracedBuffer& buffer) {
  std::size_t count = 0;
  for (std::size_t wave = 0; wave + 1 < trace.wave_begin.size(); ++wave) {
    std::uint32_t last = 0xFFFFFFFFU;
    for (std::size_t i = trace.wave_begin[wave]; i < trace.wave_begin[wave + 1]; ++i) {
      const WaveAccess& access = trace.accesses[i];
      if (access.address < buffer.address || access.address >= buffer.address + buffer.bytes) continue;
      if (access.instruction != last) ++count;
      last = access.instruction;
    }
  }
  return count;
}

}  // namespace

TEST_CASE("GPU GPTQ GEMV agrees with the reference and repeats bit for bit", "[gpu][gptq]") {
  const auto shape = GENERATE(GptqShape{1, 8, 32, 32}, GptqShape{1, 24, 1056, 32, 0},
                              GptqShape{1, 40, 4224, 128, 0, Rows::in_order, Zeros::random, GptqWorkspace::none},
                              GptqShape{2, 72, 2080, 2080, 1, Rows::in_order, Zeros::symmetric},
                              GptqShape{3, 32, 192, 64, 0, Rows::act_order}, GptqShape{4, 24, 1152, 32},
                              GptqShape{5, 40, 96, 96, 1, Rows::in_order, Zeros::random, GptqWorkspace::none},
                              GptqShape{7, 40, 2176, 64, 1, Rows::act_order, Zeros::random, GptqWorkspace::none},
                              GptqShape{8, 32, 1280, 128, 0, Rows::act_order, Zeros::symmetric});
  check_parity(shape, Dtype::f16, Dtype::f16);
  check_parity(shape, Dtype::f32, Dtype::f32);
}

TEST_CASE("GPU GPTQ GEMM agrees with the reference and repeats bit for bit", "[gpu][gptq]") {
  const auto shape =
      GENERATE(GptqShape{9, 8, 32, 32}, GptqShape{17, 136, 288, 32, 0}, GptqShape{33, 40, 384, 128, 1, Rows::act_order},
               GptqShape{65, 24, 576, 64, 1, Rows::in_order, Zeros::symmetric},
               GptqShape{130, 136, 96, 96, 0, Rows::in_order, Zeros::random, GptqWorkspace::none});
  check_parity(shape, Dtype::f16, Dtype::f16);
  check_parity(shape, Dtype::f32, Dtype::f32);
}

TEST_CASE("a GPTQ product of halves may be stored as floats", "[gpu][gptq]") {
  check_parity({1, 40, 2176, 128}, Dtype::f16, Dtype::f32);
  check_parity({10, 40, 512, 128}, Dtype::f16, Dtype::f32);
}

TEST_CASE("the GPTQ GEMV loads each byte of qweight once, 16 bytes per lane", "[gpu][gptq][trace]") {
  const int m = GENERATE(1, 2, 4, 8), wave_size = GENERATE(64, 32);
  CAPTURE(m, wave_size);
  const AddressTrace trace = trace_of({m, 64, 2048, 128}, wave_size);
  const WeightLoads loads = weight_loads(trace);
  CHECK(loads.all_are(1));
  CHECK(loads.is_sixteen_per_lane);
  const auto qweight = std::find_if(trace.buffers.begin(), trace.buffers.end(),
                                    [](const TracedBuffer& buffer) { return buffer.role == OperandRole::weight; });
  CHECK(instructions_on(trace, *qweight) * static_cast<std::size_t>(wave_size) * 16 == qweight->bytes);
  CHECK(weight_loads(trace_of({m, 40, 1120, 32, 1, Rows::act_order}, wave_size)).all_are(1));
}

TEST_CASE("the GPTQ GEMM loads each byte of qweight once for each row of tiles", "[gpu][gptq][trace]") {
  const int m = GENERATE(9, 64, 65);
  const WeightLoads loads = weight_loads(trace_of({m, 136, 96, 32}, 64));
  CHECK(loads.all_are(m <= 64 ? 1 : 2));
  CHECK(loads.is_sixteen_per_lane);
}

TEST_CASE("sort_by_group keeps the weight of every in-feature", "[gpu][gptq]") {
  TensorSource source(3);
  const StoredMatrix stored(source, {1, 16, 128, 32, 1, Rows::act_order});
  const GptqLayout layout = sort_by_group(stored.view);
  REQUIRE(layout.x_perm.size() == 128);
  GptqWeightView sorted = stored.view;
  sorted.qweight = layout.qweight.data(), sorted.g_idx = nullptr;
  std::size_t wrong = 0;
  for (int row = 0; row < 128; ++row)
    for (int n = 0; n < 16; ++n)
      if (reference::gptq_weight(sorted, row, n) !=
          reference::gptq_weight(stored.view, layout.x_perm[static_cast<std::size_t>(row)], n))
        ++wrong;
  CHECK(wrong == 0);
}

TEST_CASE("sort_by_group leaves rows in order alone and refuses groups that are not full", "[gpu][gptq]") {
  TensorSource source(3);
  StoredMatrix stored(source, {1, 8, 64, 32, 1, Rows::act_order});
  std::sort(stored.g_idx.begin(), stored.g_idx.end());
  CHECK(sort_by_group(stored.view).x_perm.empty());
  stored.g_idx[0] = 1;
  CHECK_THROWS_WITH(sort_by_group(stored.view), ContainsSubstring("group 0 31 in-features"));
  stored.g_idx[0] = 2;
  CHECK_THROWS_WITH(sort_by_group(stored.view), ContainsSubstring("in-feature 0 into group 2"));
}

TEST_CASE("GPTQ shapes and formats without a GPU kernel are refused by name", "[gpu][gptq]") {
  const auto device = open_host_device({});
  GptqMatmul args;
  args.m = 1;
  args.weight.in_features = 40, args.weight.out_features = 16, args.weight.group_size = 40;
  CHECK_THROWS_WITH(device->gptq_matmul(args),
                    ContainsSubstring("40 in-features") && ContainsSubstring("multiples of 32"));
  args.weight.in_features = 128, args.weight.out_features = 12;
  CHECK_THROWS_WITH(device->gptq_matmul(args), ContainsSubstring("12 out-features"));
  args.weight.out_features = 16, args.weight.group_size = 16;
  CHECK_THROWS_WITH(device->gptq_matmul(args), ContainsSubstring("groups of 16"));
  args.weight.in_features = 160, args.weight.group_size = 64;
  CHECK_THROWS_AS(device->gptq_matmul(args), InputError);
  args.weight.group_size = 32, args.x.dtype = Dtype::bf16;
  CHECK_THROWS_WITH(device->gptq_matmul(args), ContainsSubstring("bf16"));
}

}  // namespace dculab::kernels::gpu
