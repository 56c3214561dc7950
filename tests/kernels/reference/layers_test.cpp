// Do the references of layer norm and GELU agree with torch?
#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/golden_tensors.hpp"
#include "tests/support/catch.hpp"

namespace dculab::kernels {

TEST_CASE("layer_norm agrees with torch, with and without bias") {
  const GoldenTensors golden("layers");
  const auto x = golden.read<float>("norm.x"), weight = golden.read<float>("norm.weight"),
             bias = golden.read<float>("norm.bias");
  std::vector<float> out(x.size(), NAN);
  LayerNormArgs args{x.data(), weight.data(), bias.data(), out.data()};
  args.num_tokens = golden.size("norm.x", 0), args.width = golden.size("norm.x", 1);
  reference::layer_norm(args);
  CHECK(worst_roundings(out, golden.read<double>("norm.expected")) <= kOneRounding);
  args.bias = nullptr;
  reference::layer_norm(args);
  CHECK(worst_roundings(out, golden.read<double>("norm.without_bias")) <= kOneRounding);
}

TEST_CASE("both kinds of gelu agree with torch") {
  const GoldenTensors golden("layers");
  const auto x = golden.read<float>("gelu.x");
  std::vector<float> out(x.size(), NAN);
  GeluArgs args{x.data(), out.data(), static_cast<std::int64_t>(x.size()), GeluKind::erf};
  reference::gelu(args);
  CHECK(worst_roundings(out, golden.read<double>("gelu.erf")) <= kOneRounding);
  args.kind = GeluKind::tanh;
  reference::gelu(args);
  CHECK(worst_roundings(out, golden.read<double>("gelu.tanh")) <= kOneRounding);
}

}  // namespace dculab::kernels
