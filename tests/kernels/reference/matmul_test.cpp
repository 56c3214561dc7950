// Do the references of GPTQ and int8 products agree with matrices packed elsewhere and with small cases by hand?
#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/golden_tensors.hpp"
#include "tests/support/catch.hpp"

namespace dculab::kernels {
namespace {

// A matrix of gptq.safetensors as a checkpoint stores it.
struct StoredGptq {
  std::vector<std::uint32_t> qweight, qzeros;
  std::vector<std::uint16_t> scales;
  std::vector<std::int32_t> g_idx;
  GptqWeightView view;

  StoredGptq(const GoldenTensors& golden, const std::string& name)
      : qweight(golden.read<std::uint32_t>(name + ".qweight")),
        qzeros(golden.read<std::uint32_t>(name + ".qzeros")),
        scales(golden.read<std::uint16_t>(name + ".scales")),
        g_idx(golden.read<std::int32_t>(name + ".g_idx")) {
    view.qweight = qweight.data(), view.qzeros = qzeros.data(), view.scales = scales.data();
    view.g_idx = g_idx.empty() ? nullptr : g_idx.data();
    view.in_features = golden.size(name + ".weight", 0), view.out_features = golden.size(name + ".weight", 1);
    view.group_size = golden.read<std::int32_t>(name + ".group_size").at(0);
    view.zero_offset = golden.read<std::int32_t>(name + ".zero_offset").at(0);
  }
};

}  // namespace

TEST_CASE("GPTQ matrices dequantise exactly and multiply as torch does") {
  const GoldenTensors golden("gptq");
  for (const std::string name : {"v1", "v2", "act_order", "one_group"}) {
    INFO(name);
    const StoredGptq stored(golden, name);
    CHECK((stored.view.g_idx != nullptr) == (name == "act_order"));
    const std::vector<double> weight = golden.read<double>(name + ".weight");
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < weight.size(); ++i) {
      const int k = static_cast<int>(i) / stored.view.out_features, n = static_cast<int>(i) % stored.view.out_features;
      if (reference::gptq_weight(stored.view, k, n) != weight[i]) ++wrong;
    }
    CHECK(wrong == 0);
    const std::vector<float> x = golden.read<float>(name + ".x");
    const std::vector<double> expected = golden.read<double>(name + ".y");
    std::vector<float> y(expected.size(), NAN);
    reference::gptq_matmul({x.data(), stored.view, y.data(), golden.size(name + ".x", 0)});
    CHECK(worst_roundings(y, expected) <= kOneRounding);
  }
}

TEST_CASE("a GPTQ matrix packed by hand") {
  // Column 0 holds q = 0, 1, ... 7; the others 0 but for q[2, 3] = 9. Zero points as stored: 4 for column 0, 15 for
  // column 3. Scales: 0.5 (0x3800), column 3: 2 (0x4000).
  const std::vector<std::uint32_t> qweight{0x76543210U, 0, 0, 0x00000900U, 0, 0, 0, 0}, qzeros{0x0000F004U};
  const std::vector<std::uint16_t> scales{0x3800, 0x3800, 0x3800, 0x4000, 0x3800, 0x3800, 0x3800, 0x3800};
  GptqWeightView weight{qweight.data(), qzeros.data(), scales.data(), nullptr, 8, 8, 8, 1};
  CHECK(reference::gptq_weight(weight, 0, 0) == -2.5);
  CHECK(reference::gptq_weight(weight, 7, 0) == 1.0);
  CHECK(reference::gptq_weight(weight, 2, 3) == 2.0 * (9 - 16));
  CHECK(reference::gptq_weight(weight, 5, 1) == -0.5);
  weight.zero_offset = 0;
  CHECK(reference::gptq_weight(weight, 0, 0) == -2.0);
  CHECK(reference::gptq_weight(weight, 2, 3) == 2.0 * (9 - 15));
  CHECK(reference::gptq_weight(weight, 5, 1) == 0.0);
}

TEST_CASE("int8 products agree with torch") {
  const GoldenTensors golden("layers");
  const auto x = golden.read<std::int8_t>("int8.x"), w = golden.read<std::int8_t>("int8.w");
  const auto x_scale = golden.read<float>("int8.x_scale"), w_scale = golden.read<float>("int8.w_scale");
  const std::vector<double> expected = golden.read<double>("int8.y");
  std::vector<float> y(expected.size(), NAN);
  const int m = golden.size("int8.x", 0), n = golden.size("int8.w", 0), k = golden.size("int8.x", 1);
  reference::int8_matmul({x.data(), x_scale.data(), w.data(), w_scale.data(), y.data(), m, n, k});
  CHECK(worst_roundings(y, expected) <= kOneRounding);
}

TEST_CASE("rows are quantised to nearest even, the largest value to 127") {
  const std::vector<float> x{-127,  0.5F,   1.5F,  2.5F,  // scale 1: ties
                             0,     0,      0,     0,     // nothing to scale
                             1e-3F, -2e-3F, 1e-4F, 0,    3e38F, -3e38F, 1e38F, 0};
  std::vector<std::int8_t> out(x.size(), 99);
  std::vector<float> scale(4, NAN);
  reference::quantize_rows({x.data(), out.data(), scale.data(), 4, 4});
  CHECK(out == std::vector<std::int8_t>{-127, 0, 2, 2, 0, 0, 0, 0, 64, -127, 6, 0, 127, -127, 42, 0});
  CHECK(scale == std::vector<float>{1.0F, 0.0F, 2e-3F / 127.0F, 3e38F / 127.0F});
}

TEST_CASE("a row too small for its scale does not overflow int8") {
  const float tiny = std::numeric_limits<float>::denorm_min();
  const std::vector<float> x{190 * tiny, -190 * tiny, 3 * tiny, 0, 3 * tiny, 0, 0, -tiny};
  std::vector<std::int8_t> out(x.size(), 99);
  std::vector<float> scale(2, NAN);
  reference::quantize_rows({x.data(), out.data(), scale.data(), 2, 4});
  CHECK(scale == std::vector<float>{tiny, 0.0F});  // 190 / 127 and 3 / 127 of the smallest value, rounded
  CHECK(out == std::vector<std::int8_t>{127, -127, 3, 0, 0, 0, 0, 0});
}

}  // namespace dculab::kernels
