// The keys of a stack file that are no figures; the figures are in sim/hardware/stack_fields.hpp.
#pragma once

#include <array>
#include <string_view>
#include <tuple>

#include "config/key_list.hpp"
#include "config/stack_file.hpp"
#include "core/batch.hpp"

namespace dculab::config {

inline constexpr auto kVendors = std::to_array<Choice<lower::Vendor>>(
    {{"nvidia", lower::Vendor::nvidia}, {"amd", lower::Vendor::amd}, {"hygon", lower::Vendor::hygon}});

inline constexpr auto kSplits =
    std::to_array<Choice<sim::Split>>({{"tensor", sim::Split::tensor}, {"layers", sim::Split::layers}});

// What a figure of a stack rests on; "fitted": to measured runs.
inline constexpr auto kStackEvidence = std::to_array<Choice<std::string_view>>(
    {{"spec", "spec"}, {"measured", "measured"}, {"fitted", "fitted"}, {"assumed", "assumed"}});

struct StackKeys {
  using Target = sim::Stack;
  static constexpr KeyTraits kRequired{.necessity = Necessity::required};
  static constexpr auto keys = std::tuple(
      shaped("schema", read_schema<sim::Stack, kStackSchema>, {.words = one_of(kStackSchema)},
             "what kind of file this is", kRequired),
      value("name", &sim::Stack::name, "the file's name", kRequired),
      value("program", &sim::Stack::program, "`vLLM`: stacks of one program on several devices share it", kRequired),
      value("description", &sim::Stack::description, "one line, with versions", kRequired),
      value("age", &sim::Stack::age, "0: today's; larger: older, taken only by name", {.bounds = between(0, 100)}),
      word("split", &sim::Stack::split, kSplits,
           "how devices share a model: `layers`: whole layers, one device working at a time"),
      value("frees_windows", &sim::Stack::frees_windows,
            "`true`: of layers with a window the KV cache keeps what the window still sees"));
};

// What the program does unless told otherwise.
struct DefaultsKeys {
  using Target = sim::ProgramDefaults;
  static constexpr auto keys =
      std::tuple(value("block_size", &sim::ProgramDefaults::block_size, "tokens per KV block unless told otherwise",
                       {.bounds = between(1, 256), .unit = unit::tokens}),
                 value("max_num_seqs", &sim::ProgramDefaults::max_num_seqs, "sequences in a step unless told otherwise",
                       {.bounds = between(1, kLargestBatch), .unit = "sequences"}),
                 value("max_num_batched_tokens", &sim::ProgramDefaults::max_num_batched_tokens,
                       "new tokens in a step unless told otherwise",
                       {.bounds = between(1, kLongestContext), .unit = unit::tokens}));
};

// What the program takes, beside what its kernels serve.
struct LimitsKeys {
  using Target = sim::ProgramLimits;
  static constexpr KeyTraits kAll{.absent = "all"};
  static constexpr auto keys = std::tuple(
      value("block_sizes", &sim::ProgramLimits::block_sizes, "what the program takes, beside what its kernels serve",
            {.unit = unit::tokens, .absent = "all"}),
      value("kv_cache_dtypes", &sim::ProgramLimits::kv_cache_dtypes, "likewise", kAll),
      value("weight_dtypes", &sim::ProgramLimits::weight_dtypes, "likewise", kAll),
      value("alibi", &sim::ProgramLimits::alibi, "`false`: the program passes no ALiBi slopes to its kernels"),
      value("max_num_seqs", &sim::ProgramLimits::max_num_seqs, "likewise",
            {.bounds = between(1, kLargestBatch), .unit = "sequences", .absent = "any"}));
};

}  // namespace dculab::config
