// The figures and lists of a stack file, as tables: adding one is one line here.
#pragma once

#include <array>
#include <string_view>

#include "config/machine_fields.hpp"
#include "config/map_reader.hpp"
#include "sim/hardware/stack.hpp"

namespace dculab::config {

inline constexpr auto kVendors = std::to_array<Choice<lower::Vendor>>(
    {{"nvidia", lower::Vendor::nvidia}, {"amd", lower::Vendor::amd}, {"hygon", lower::Vendor::hygon}});

inline constexpr auto kSplits =
    std::to_array<Choice<sim::Split>>({{"tensor", sim::Split::tensor}, {"layers", sim::Split::layers}});

// Of a count or size that a program takes unless told otherwise.
struct DefaultField {
  std::string_view key;
  int sim::ProgramDefaults::*member;
  Range range;
};
inline constexpr std::array<DefaultField, 3> kProgramDefaults{{
    {"block_size", &sim::ProgramDefaults::block_size, between(1, 256)},
    {"max_num_seqs", &sim::ProgramDefaults::max_num_seqs, between(1, kLargestBatch)},
    {"max_num_batched_tokens", &sim::ProgramDefaults::max_num_batched_tokens, between(1, kLongestContext)},
}};

}  // namespace dculab::config
