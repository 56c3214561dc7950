// What a format of the KV cache keeps beside the blocks, of one layer: a small struct of the format's own, which goes
// by value with the view of the cache, to device code too.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <type_traits>

namespace dculab::kernels {

// fp8_e4m3, fp8_e5m2: a stored value stands for value * scale, as in vLLM.
struct Fp8KvScales {
  float k = 1.0F, v = 1.0F;
};

// int8: likewise, with a scale of each token and head.
struct Int8KvScales {
  float* k = nullptr;  // [num_blocks, num_kv_heads, block_size]
  float* v = nullptr;  // the same
};

// Holds one such struct of any format; the cache's dtype says which. Where none was given FP8 has scales of 1.
class KvExtras {
  static constexpr std::size_t kBytes = 64;

  // bit_cast wants both sides equally long.
  template <typename Extras>
  struct Filled {
    Extras extras;
    std::array<std::byte, kBytes - sizeof(Extras)> rest{};
  };

 public:
  constexpr KvExtras() : bytes_(std::bit_cast<Bytes>(Filled<Fp8KvScales>{})) {}

  template <typename Extras>
  requires(!std::is_same_v<Extras, KvExtras> && std::is_trivially_copyable_v<Extras> &&
           sizeof(Extras) < kBytes) constexpr KvExtras(const Extras& extras)
      : bytes_(std::bit_cast<Bytes>(Filled<Extras>{extras})), are_given_(true) {}

  [[nodiscard]] constexpr bool are_given() const { return are_given_; }

  // Precondition: a struct of this type was given, or it is Fp8KvScales and none was.
  template <typename Extras>
  [[nodiscard]] constexpr Extras as() const {
    return std::bit_cast<Filled<Extras>>(bytes_).extras;
  }

 private:
  struct alignas(8) Bytes {
    std::array<std::byte, kBytes> bytes;
  };
  Bytes bytes_;
  bool are_given_ = false;
};

}  // namespace dculab::kernels
