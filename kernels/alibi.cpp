#include "kernels/alibi.hpp"

#include <bit>
#include <cmath>

namespace dculab::kernels {

std::vector<float> alibi_slopes(int num_heads) {
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(num_heads)));
  std::vector<float> slopes;
  for (int i = 1; i <= power; ++i) slopes.push_back(static_cast<float>(std::exp2(-8.0 * i / power)));
  for (int i = 1; i <= num_heads - power; ++i) {
    slopes.push_back(static_cast<float>(std::exp2(-8.0 * (2 * i - 1) / (2 * power))));
  }
  return slopes;
}

}  // namespace dculab::kernels
