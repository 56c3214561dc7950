// Are ALiBi slopes those of the paper, and those of transformers for any number of heads?
#include "kernels/alibi.hpp"

#include "tests/kernels/golden_tensors.hpp"
#include "tests/support/catch.hpp"

namespace dculab::kernels {

TEST_CASE("eight heads have the slopes of the paper: 1/2, 1/4, ... 1/256") {
  CHECK(alibi_slopes(8) == std::vector<float>{0x1p-1F, 0x1p-2F, 0x1p-3F, 0x1p-4F, 0x1p-5F, 0x1p-6F, 0x1p-7F, 0x1p-8F});
  CHECK(alibi_slopes(1) == std::vector<float>{0x1p-8F});
}

TEST_CASE("six heads: four by the rule, then the first and third of eight") {
  CHECK(alibi_slopes(6) == std::vector<float>{0x1p-2F, 0x1p-4F, 0x1p-6F, 0x1p-8F, 0x1p-1F, 0x1p-3F});
}

TEST_CASE("slopes agree with transformers for every number of heads it was asked") {
  const GoldenTensors golden("slopes");
  CHECK(golden.all().size() == 13);
  for (const auto& [heads, tensor] : golden.all()) {
    const std::vector<float> expected = golden.read<float>(heads), slopes = alibi_slopes(std::stoi(heads));
    INFO(heads << " heads");
    REQUIRE(slopes.size() == expected.size());
    for (std::size_t i = 0; i < slopes.size(); ++i) {
      // transformers raises a base rounded to F32 (by up to 2^-24) to a power of up to twice the heads, also rounded.
      const double tolerance = (2 * std::stod(heads) + 2) * 0x1p-24;
      CHECK_THAT(slopes[i], WithinRel(expected[i], static_cast<float>(tolerance)));
    }
  }
}

}  // namespace dculab::kernels
