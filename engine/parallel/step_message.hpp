// What rank 0 tells the other ranks to do, as bytes. Ranks are copies of one process, so that a plan's names, which lie
// in the program, are where they were.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "core/executor.hpp"

namespace dculab::engine {

enum class RankCommand : std::uint32_t { stop, run, copy_blocks, move_slots, swap_blocks, forget, fill_kv_cache };

// Puts values one after the other; keeps its storage.
class MessageWriter {
 public:
  explicit MessageWriter(std::vector<std::byte>& bytes) : bytes_(bytes) { bytes_.clear(); }

  template <class T>
  void add(const T& value) {
    add_all(std::span<const T>(&value, 1));
  }
  template <class T>
  void add_list(std::span<const T> values) {
    add(static_cast<std::uint64_t>(values.size()));
    add_all(values);
  }
  void add_plan(const StepPlan& plan);

 private:
  template <class T>
  void add_all(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* const from = reinterpret_cast<const std::byte*>(values.data());
    bytes_.insert(bytes_.end(), from, from + values.size_bytes());
  }

  std::vector<std::byte>& bytes_;
};

// The way back. Precondition: what is read is what was written.
class MessageReader {
 public:
  explicit MessageReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  [[nodiscard]] T take() {
    std::vector<T> one(1);
    take_all(one);
    return one.front();
  }
  template <class T>
  void take_list(std::vector<T>& values) {
    values.resize(take<std::uint64_t>());
    take_all(values);
  }
  template <class T>
  [[nodiscard]] std::vector<T> take_list() {
    std::vector<T> values;
    take_list(values);
    return values;
  }
  void take_plan(StepPlan& plan);  // whose storage is used again

 private:
  template <class T>
  void take_all(std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::size_t size = values.size() * sizeof(T);
    std::copy_n(bytes_.begin(), size, reinterpret_cast<std::byte*>(values.data()));
    bytes_ = bytes_.subspan(size);
  }

  std::span<const std::byte> bytes_;
};

}  // namespace dculab::engine
