// Does the reference of top-k agree with torch, and break ties as documented?
#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/golden_tensors.hpp"
#include "tests/support/catch.hpp"

namespace dculab::kernels {
namespace {

struct TopK {
  std::vector<float> values;
  std::vector<std::int32_t> indices;
};

TopK top_k(const std::vector<float>& x, int rows, int k) {
  const auto count = static_cast<std::size_t>(rows * k);
  TopK top{std::vector<float>(count, NAN), std::vector<std::int32_t>(count, -1)};
  reference::top_k({x.data(), top.values.data(), top.indices.data(), rows, static_cast<int>(x.size()) / rows, k});
  return top;
}

}  // namespace

TEST_CASE("top_k agrees with torch") {
  const GoldenTensors golden("layers");
  const auto x = golden.read<float>("top_k.x");
  const int rows = golden.size("top_k.x", 0);
  const TopK top = top_k(x, rows, golden.size("top_k.values", 1));
  CHECK(top.values == golden.read<float>("top_k.values"));
  CHECK(top.indices == golden.read<std::int32_t>("top_k.indices"));
}

TEST_CASE("of equal values the first wins, zeros of either sign are equal, NaN comes last") {
  const std::vector<float> ties{1, 3, 2, 3, 3};
  CHECK(top_k(ties, 1, 5).indices == std::vector<std::int32_t>{1, 3, 4, 2, 0});
  const std::vector<float> zeros{-1, -0.0F, 0.0F};
  CHECK(top_k(zeros, 1, 2).indices == std::vector<std::int32_t>{1, 2});
  const std::vector<float> nans{NAN, -INFINITY, NAN, -5};
  CHECK(top_k(nans, 1, 4).indices == std::vector<std::int32_t>{3, 1, 0, 2});
}

}  // namespace dculab::kernels
