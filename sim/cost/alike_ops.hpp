// Which ops of a step do the same work in layers of several kinds, so that one price serves all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/op.hpp"

namespace dculab::sim {

class AlikeOps {
 public:
  // Nothing is alike in a step of one kind of layers.
  explicit AlikeOps(std::span<const Op> ops);

  // The first op before this one, in layers of another kind, that does the same work.
  [[nodiscard]] std::optional<std::size_t> first(std::size_t index) const;

  // Executions of the op, and of later ones in layers of another kind that do the same work.
  [[nodiscard]] int executions(std::size_t index) const { return entries_[index].executions; }

 private:
  struct Entry {
    std::uint64_t key = 0;  // equal where two ops are alike
    std::uint8_t kind = 0;  // of layers
    int executions = 0;
    std::int32_t first = -1;   // -1: none
    std::int32_t before = -1;  // the last one whose key ends alike
  };
  std::vector<Entry> entries_;
};

}  // namespace dculab::sim
