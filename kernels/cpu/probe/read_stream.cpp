#include "kernels/cpu/probe/read_stream.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/probe/read_stream.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace dculab::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

enum class Prefetching : std::uint8_t { hardware, software };

constexpr std::size_t kPrefetchStride = 64;  // the smallest line of current CPUs
constexpr std::size_t kBlock = 512;          // bytes of one stream before the next takes its turn

template <int kStreams, Prefetching kPrefetching>
std::uint64_t read_streams(const std::byte* data, std::size_t bytes, int passes, std::size_t ahead) {
  const hn::ScalableTag<std::uint64_t> d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t part = bytes / kStreams;
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d), sum2 = hn::Zero(d), sum3 = hn::Zero(d);
  for (int pass = 0; pass < passes; ++pass) {
    for (std::size_t offset = 0; offset < part; offset += kBlock) {
      for (std::size_t stream = 0; stream < kStreams; ++stream) {
        const std::byte* block = data + stream * part + offset;
        if constexpr (kPrefetching == Prefetching::software) {
          for (std::size_t i = 0; i < kBlock; i += kPrefetchStride) hwy::Prefetch(block + ahead + i);
        }
        const auto* words = reinterpret_cast<const std::uint64_t*>(block);
        for (std::size_t i = 0; i < kBlock / sizeof(std::uint64_t); i += 4 * lanes) {
          sum0 = hn::Xor(sum0, hn::Load(d, words + i));
          sum1 = hn::Xor(sum1, hn::Load(d, words + i + lanes));
          sum2 = hn::Xor(sum2, hn::Load(d, words + i + 2 * lanes));
          sum3 = hn::Xor(sum3, hn::Load(d, words + i + 3 * lanes));
        }
      }
    }
  }
  const auto sum = hn::Xor(hn::Xor(sum0, sum1), hn::Xor(sum2, sum3));
  HWY_ALIGN std::uint64_t words[HWY_MAX_BYTES / sizeof(std::uint64_t)];
  hn::Store(sum, d, words);
  std::uint64_t folded = 0;
  for (std::size_t i = 0; i < lanes; ++i) folded ^= words[i];
  return folded;
}

template <int kStreams>
std::uint64_t read_streams(const std::byte* data, std::size_t bytes, int passes, int prefetch_bytes) {
  const auto ahead = static_cast<std::size_t>(prefetch_bytes);
  return ahead > 0 ? read_streams<kStreams, Prefetching::software>(data, bytes, passes, ahead)
                   : read_streams<kStreams, Prefetching::hardware>(data, bytes, passes, ahead);
}

std::uint64_t read_shaped(const std::byte* data, std::size_t bytes, int passes, StreamShape shape) {
  switch (shape.streams) {
    case 2:
      return read_streams<2>(data, bytes, passes, shape.prefetch_bytes);
    case 4:
      return read_streams<4>(data, bytes, passes, shape.prefetch_bytes);
    case 8:
      return read_streams<8>(data, bytes, passes, shape.prefetch_bytes);
    default:
      return read_streams<1>(data, bytes, passes, shape.prefetch_bytes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace dculab::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dculab::kernels::cpu {

HWY_EXPORT(read_shaped);

std::uint64_t read_memory(const std::byte* data, std::size_t bytes, int passes, StreamShape shape) {
  return HWY_DYNAMIC_DISPATCH(read_shaped)(data, bytes, passes, shape);
}

}  // namespace dculab::kernels::cpu
#endif
