#include "kernels/reference/cached_value.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/reference/stored_value.hpp"

namespace dculab::kernels::reference {
namespace {

bool is_fp8(Dtype dtype) { return dtype == Dtype::fp8_e4m3 || dtype == Dtype::fp8_e5m2; }

[[nodiscard]] int row_values(const KvCacheView& cache, KvTensor tensor) {
  return tensor == KvTensor::k ? cache.head_dim : cache.value_stride();
}

// The int8 scale of the head that `index` lies in.
float& head_scale(const KvCacheView& cache, KvTensor tensor, std::size_t index) {
  const auto scales = cache.extras.as<Int8KvScales>();
  float* const of_tensor = tensor == KvTensor::k ? scales.k : scales.v;
  return of_tensor[index / static_cast<std::size_t>(row_values(cache, tensor))];
}

double scale_of(const KvCacheView& cache, KvTensor tensor, std::size_t index) {
  if (cache.dtype == Dtype::int8) return head_scale(cache, tensor, index);
  if (!is_fp8(cache.dtype)) return 1.0;
  const auto scales = cache.extras.as<Fp8KvScales>();
  return tensor == KvTensor::k ? scales.k : scales.v;
}

void* data_of(const KvCacheView& cache, KvTensor tensor) { return tensor == KvTensor::k ? cache.k : cache.v; }

}  // namespace

std::int64_t slot_of(const KvCacheView& cache, const std::int32_t* block_table, int token) {
  return std::int64_t{block_table[token / cache.block_size]} * cache.block_size + token % cache.block_size;
}

std::size_t cache_index(const KvCacheView& cache, KvTensor tensor, std::int64_t slot, int kv_head, int d) {
  const std::int64_t block = slot / cache.block_size;
  const std::int64_t offset = slot % cache.block_size;
  const std::int64_t row = (block * cache.heads_in_block() + kv_head) * cache.block_size + offset;
  return static_cast<std::size_t>(row * row_values(cache, tensor) + d);
}

double load_cached(const KvCacheView& cache, KvTensor tensor, std::size_t index) {
  const double scale = scale_of(cache, tensor, index);
  const void* data = data_of(cache, tensor);
  if (cache.dtype == Dtype::int8) return static_cast<const std::int8_t*>(data)[index] * scale;
  return load_value(data, cache.dtype, index) * scale;
}

void store_cached(const KvCacheView& cache, KvTensor tensor, std::int64_t slot, int kv_head, const float* values) {
  const std::size_t first = cache_index(cache, tensor, slot, kv_head, 0);
  const auto head_dim = static_cast<std::size_t>(row_values(cache, tensor));
  if (cache.dtype == Dtype::int8) {
    double largest = 0;
    for (std::size_t d = 0; d < head_dim; ++d) largest = std::max(largest, std::abs(double{values[d]}));
    head_scale(cache, tensor, first) = static_cast<float>(largest / 127);
  }
  const double scale = scale_of(cache, tensor, first);
  for (std::size_t d = 0; d < head_dim; ++d) {
    // F64 has more than twice the bits of F32, so rounding its quotient again gives the correctly rounded F32 quotient.
    const auto quotient = static_cast<float>(scale == 0 ? 0.0 : values[d] / scale);
    if (cache.dtype == Dtype::int8)
      static_cast<std::int8_t*>(data_of(cache, tensor))[first + d] = static_cast<std::int8_t>(std::nearbyint(quotient));
    else
      store_value(data_of(cache, tensor), cache.dtype, first + d, quotient);
  }
}

}  // namespace dculab::kernels::reference
