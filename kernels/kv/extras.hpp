// What a format of the KV cache keeps beside the blocks, of one layer: a small struct of the format's own, which goes
// by value with the view of the cache, to device code too.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

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
  static constexpr std::size_t kWords = 8;

  template <typename Extras>
  static constexpr bool kFits = std::is_trivially_copyable_v<Extras> && sizeof(Extras) % sizeof(std::uint64_t) == 0 &&
                                sizeof(Extras) <= kWords * sizeof(std::uint64_t);
  template <typename Extras>
  using WordsOf = std::array<std::uint64_t, sizeof(Extras) / sizeof(std::uint64_t)>;

 public:
  constexpr KvExtras() { take(Fp8KvScales{}); }

  template <typename Extras>
  requires(!std::is_same_v<Extras, KvExtras> && kFits<Extras>) constexpr KvExtras(const Extras& extras)
      : are_given_(true) {
    take(extras);
  }

  [[nodiscard]] constexpr bool are_given() const { return are_given_; }

  // Precondition: a struct of this type was given, or it is Fp8KvScales and none was. Reads its words alone, so that a
  // kernel needs no copy of them all.
  template <typename Extras>
  [[nodiscard]] constexpr Extras as() const {
    return first_words<Extras>(std::make_index_sequence<std::tuple_size_v<WordsOf<Extras>>>());
  }

 private:
  template <typename Extras>
  constexpr void take(const Extras& extras) {
    const auto words = std::bit_cast<WordsOf<Extras>>(extras);
    for (std::size_t i = 0; i < words.size(); ++i) words_[i] = words[i];
  }

  template <typename Extras, std::size_t... kIndex>
  [[nodiscard]] constexpr Extras first_words(std::index_sequence<kIndex...>) const {
    return std::bit_cast<Extras>(WordsOf<Extras>{words_[kIndex]...});
  }

  std::uint64_t words_[kWords] = {};
  bool are_given_ = false;
};

}  // namespace dculab::kernels
