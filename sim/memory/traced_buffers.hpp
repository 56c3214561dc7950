// Which operand an address of a trace belongs to, and whether a trace is sound.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/address_trace.hpp"

namespace dculab::sim {

// The role of every page of 4 KiB.
class RoleMap {
 public:
  // Precondition: no two buffers share a page.
  explicit RoleMap(const std::vector<TracedBuffer>& buffers);

  // Is [begin, end) inside the buffers?
  [[nodiscard]] bool contains(std::uint64_t begin, std::uint64_t end) const;
  // Precondition: contains(address, address + 1).
  [[nodiscard]] OperandRole at(std::uint64_t address) const { return OperandRole{roles_[address >> kPageBits]}; }
  [[nodiscard]] std::uint64_t end() const { return std::uint64_t{roles_.size()} << kPageBits; }

 private:
  static constexpr int kPageBits = 12;
  std::vector<std::uint8_t> roles_;  // [pages]
};

// Everything that makes a trace unusable, one sentence each; empty when it is sound.
[[nodiscard]] std::vector<std::string> problems(const AddressTrace& trace);

}  // namespace dculab::sim
