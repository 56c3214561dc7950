// Do the references of softmax, argmax and top-k agree with torch, and break ties as documented?
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

std::vector<std::int32_t> argmax(const std::vector<float>& x, int rows) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(rows), -1);
  reference::argmax({x.data(), out.data(), rows, static_cast<int>(x.size()) / rows});
  return out;
}

}  // namespace

TEST_CASE("softmax agrees with torch: -infinity, large values, a temperature") {
  const GoldenTensors golden("layers");
  const auto x = golden.read<float>("softmax.x");
  std::vector<float> out(x.size(), NAN);
  SoftmaxArgs args{x.data(), out.data(), golden.size("softmax.x", 0), golden.size("softmax.x", 1), 1.0F};
  reference::softmax(args);
  CHECK(worst_roundings(out, golden.read<double>("softmax.t1")) <= kOneRounding);
  args.temperature = 0.5F;
  reference::softmax(args);
  CHECK(worst_roundings(out, golden.read<double>("softmax.t0_5")) <= kOneRounding);
}

TEST_CASE("argmax and top_k agree with torch") {
  const GoldenTensors golden("layers");
  const auto x = golden.read<float>("top_k.x");
  const int rows = golden.size("top_k.x", 0);
  CHECK(argmax(x, rows) == golden.read<std::int32_t>("argmax.out"));
  const TopK top = top_k(x, rows, golden.size("top_k.values", 1));
  CHECK(top.values == golden.read<float>("top_k.values"));
  CHECK(top.indices == golden.read<std::int32_t>("top_k.indices"));
}

TEST_CASE("of equal values the first wins, zeros of either sign are equal, NaN comes last") {
  const std::vector<float> ties{1, 3, 2, 3, 3};
  CHECK(argmax(ties, 1).at(0) == 1);
  CHECK(top_k(ties, 1, 5).indices == std::vector<std::int32_t>{1, 3, 4, 2, 0});
  const std::vector<float> zeros{-1, -0.0F, 0.0F};
  CHECK(argmax(zeros, 1).at(0) == 1);
  CHECK(top_k(zeros, 1, 2).indices == std::vector<std::int32_t>{1, 2});
  const std::vector<float> nans{NAN, -INFINITY, NAN, -5};
  CHECK(argmax(nans, 1).at(0) == 3);
  CHECK(top_k(nans, 1, 4).indices == std::vector<std::int32_t>{3, 1, 0, 2});
  CHECK(argmax({NAN, NAN}, 1).at(0) == 0);
}

}  // namespace dculab::kernels
