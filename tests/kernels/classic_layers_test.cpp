// Do LayerNorm and GELU agree with the reference, and keep their bits whatever is computed beside them?
#include <cmath>

#include "kernels/reference/reference_kernels.hpp"
#include "tests/kernels/tensors.hpp"

namespace dculab::kernels {
namespace {

// One call of layer_norm: the residual it leaves, and what it normed.
struct NormCase {
  int tokens, width, num_added;
  std::vector<float> x, weight, bias, first, second;

  NormCase(int tokens_, int width_, int num_added_, float mean)
      : tokens(tokens_), width(width_), num_added(num_added_) {
    TensorSource source(static_cast<unsigned>(width));
    const auto count = static_cast<std::size_t>(tokens * width);
    x = source.floats(count);
    for (float& value : x) value += mean;
    weight = source.floats(static_cast<std::size_t>(width));
    bias = source.floats(static_cast<std::size_t>(width));
    first = source.floats(count), second = source.floats(count);
  }

  // num_added < 0: no residual.
  template <typename Kernel>
  std::pair<std::vector<float>, std::vector<float>> run(Kernel&& kernel, int first_token, int count) const {
    const std::ptrdiff_t begin = std::ptrdiff_t{first_token} * width, values = std::ptrdiff_t{count} * width;
    std::vector<float> residual(x.begin() + begin, x.begin() + begin + values);
    std::vector<float> out(residual.size(), NAN);
    LayerNormArgs args;
    args.x = residual.data();
    if (num_added >= 0) args.x = nullptr, args.residual = residual.data();
    if (num_added >= 1) args.added[0] = first.data() + begin;
    if (num_added >= 2) args.added[1] = second.data() + begin;
    args.weight = weight.data();
    args.bias = num_added == 1 ? nullptr : bias.data();
    args.out = out.data();
    args.num_tokens = count, args.width = width;
    kernel(args);
    return {residual, out};
  }
};

std::vector<float> gelu_on_cpu(const std::vector<float>& x, GeluKind kind, int num_threads) {
  cpu::ThreadPool threads(num_threads);
  std::vector<float> out(x.size(), NAN);
  cpu::gelu(threads, {x.data(), out.data(), static_cast<std::int64_t>(x.size()), kind});
  return out;
}

}  // namespace

TEST_CASE("layer_norm agrees with the reference, with and without a residual, far from a mean of zero too") {
  cpu::ThreadPool threads(2);
  for (const auto& [tokens, width] : {std::pair{1, 1}, {1, 8}, {3, 67}, {2, 2048}, {40, 1000}}) {
    for (const int num_added : {-1, 0, 1, 2}) {
      for (const float mean : {0.0F, 100.0F}) {
        const NormCase c(tokens, width, num_added, mean);
        const auto expected = c.run([](const LayerNormArgs& args) { reference::layer_norm(args); }, 0, tokens);
        for_each_vector_target([&](std::string_view target) {
          INFO(target << ", " << tokens << " x " << width << ", " << num_added << " added, mean " << mean);
          const auto result = c.run([&](const LayerNormArgs& args) { cpu::layer_norm(threads, args); }, 0, tokens);
          CHECK(result.first == expected.first);
          // Values of size 1 whose mean, about `mean`, is off by some of its own roundings; a weight of up to 4.
          CHECK(largest_difference(result.second, expected.second) <= 4 * (2e-6 + mean * 4 * 0x1p-24));
        });
      }
    }
  }
}

TEST_CASE("a token of layer_norm has the same bits alone, in place and on any number of threads") {
  const NormCase c(50, 1000, 2, 0.5F);
  const auto on_cpu = [&](int num_threads, int first, int count) {
    cpu::ThreadPool threads(num_threads);
    return c.run([&](const LayerNormArgs& args) { cpu::layer_norm(threads, args); }, first, count).second;
  };
  const std::vector<float> whole = on_cpu(1, 0, 50);
  CHECK(on_cpu(2, 0, 50) == whole);
  CHECK(on_cpu(2, 49, 1) == std::vector<float>(whole.end() - 1000, whole.end()));

  std::vector<float> in_place = c.x, apart(c.x.size());
  cpu::ThreadPool threads(1);
  LayerNormArgs args;
  args.x = in_place.data(), args.weight = c.weight.data(), args.bias = c.bias.data();
  args.num_tokens = 50, args.width = 1000, args.out = apart.data();
  cpu::layer_norm(threads, args);
  args.out = in_place.data();
  cpu::layer_norm(threads, args);
  CHECK(in_place == apart);
}

TEST_CASE("gelu agrees with the reference, also far from zero") {
  TensorSource source(4);
  std::vector<float> x = source.floats(5000, 2.0F);
  for (int i = 0; i <= 400; ++i) x.push_back(static_cast<float>(i - 200) * 0.1F);
  for (const float extreme : {0.0F, -0.0F, 1e-30F, -1e-30F, 200.0F, -200.0F, 1e10F, -1e10F}) x.push_back(extreme);
  for (const GeluKind kind : {GeluKind::erf, GeluKind::tanh}) {
    std::vector<float> expected(x.size());
    reference::gelu({x.data(), expected.data(), static_cast<std::int64_t>(x.size()), kind});
    for_each_vector_target([&](std::string_view target) {
      INFO(target << (kind == GeluKind::erf ? " erf" : " tanh"));
      const std::vector<float> out = gelu_on_cpu(x, kind, 2);
      double worst = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double difference = std::abs(double{out[i]} - expected[i]) / (std::abs(double{x[i]}) + 1e-37);
        worst = std::max(worst, std::isnan(difference) ? INFINITY : difference);
      }
      CHECK(worst <= 8 * 0x1p-24);  // of x: what multiplies it is at most 1
    });
  }
}

TEST_CASE("a value of gelu has the same bits wherever it stands and on any number of threads") {
  TensorSource source(6);
  const std::vector<float> x = source.floats(20003, 2.0F);
  for (const GeluKind kind : {GeluKind::erf, GeluKind::tanh}) {
    for_each_vector_target([&](std::string_view target) {
      INFO(target);
      const std::vector<float> whole = gelu_on_cpu(x, kind, 1);
      CHECK(gelu_on_cpu(x, kind, 3) == whole);
      const std::vector<float> part(x.begin() + 4093, x.begin() + 4200);
      CHECK(gelu_on_cpu(part, kind, 1) == std::vector<float>(whole.begin() + 4093, whole.begin() + 4200));
    });
  }
}

}  // namespace dculab::kernels
