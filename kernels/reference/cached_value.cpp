#include "kernels/reference/cached_value.hpp"

#include "kernels/reference/stored_value.hpp"

namespace dculab::kernels::reference {
namespace {

double scale_of(const KvCacheView& cache, KvTensor tensor) {
  const bool fp8 = cache.dtype == Dtype::fp8_e4m3 || cache.dtype == Dtype::fp8_e5m2;
  if (!fp8) return 1.0;
  return tensor == KvTensor::k ? cache.k_scale : cache.v_scale;
}

void* data_of(const KvCacheView& cache, KvTensor tensor) { return tensor == KvTensor::k ? cache.k : cache.v; }

}  // namespace

std::int64_t slot_of(const KvCacheView& cache, const std::int32_t* block_table, int token) {
  return std::int64_t{block_table[token / cache.block_size]} * cache.block_size + token % cache.block_size;
}

std::size_t cache_index(const KvCacheView& cache, std::int64_t slot, int kv_head, int d) {
  const std::int64_t block = slot / cache.block_size;
  const std::int64_t offset = slot % cache.block_size;
  const std::int64_t row = (block * cache.num_kv_heads + kv_head) * cache.block_size + offset;
  return static_cast<std::size_t>(row * cache.head_dim + d);
}

double load_cached(const KvCacheView& cache, KvTensor tensor, std::size_t index) {
  return load_value(data_of(cache, tensor), cache.dtype, index) * scale_of(cache, tensor);
}

void store_cached(const KvCacheView& cache, KvTensor tensor, std::size_t index, float value) {
  // F64 has more than twice the bits of F32, so rounding its quotient again gives the correctly rounded F32 quotient.
  store_value(data_of(cache, tensor), cache.dtype, index, value / scale_of(cache, tensor));
}

}  // namespace dculab::kernels::reference
