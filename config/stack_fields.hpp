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

// Of what a program moves beside the plan: {value, kind, source}.
struct UnfusedField {
  std::string_view key;
  std::variant<double lower::UnfusedWork::*, int lower::UnfusedWork::*> member;
};
inline constexpr std::array<UnfusedField, 4> kUnfused{{
    {"activation_scale", &lower::UnfusedWork::activation_scale},
    {"bytes_per_score", &lower::UnfusedWork::bytes_per_score},
    {"bytes_per_widened_weight", &lower::UnfusedWork::bytes_per_widened_weight},
    {"widened_from_rows", &lower::UnfusedWork::widened_from_rows},
}};

}  // namespace dculab::config
