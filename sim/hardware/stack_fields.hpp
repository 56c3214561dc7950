// The figures of a stack, one entry each: adding one is one entry here.
#pragma once

#include <array>
#include <string_view>
#include <type_traits>
#include <variant>

#include "core/batch.hpp"
#include "sim/hardware/figure_field.hpp"
#include "sim/hardware/stack.hpp"

namespace dculab::sim {

// What kernels reach, of a stack or of a stack on a machine: the one list of efficiencies beside kSustained.
inline constexpr auto kReached = std::to_array<FigureField<Reached>>({
    {"matmul_compute",
     &Reached::matmul_compute,
     "that products reach of what their kernel was measured to reach, of the peak where it was not",
     {.of = "peaks", .prior = share_prior(1, 0.30, Owner::kernels)}},
    {"attention_compute",
     &Reached::attention_compute,
     "that attention reaches",
     {.of = "peaks", .prior = share_prior(2, 0.50, Owner::kernels)}},
    {"elementwise_compute",
     &Reached::elementwise_compute,
     "that all other kernels reach",
     {.of = "peaks", .prior = share_prior(3, 0.70, Owner::kernels)}},
    {"conversion_compute",
     &Reached::conversion_compute,
     "that dequantising and widening weights or KV reaches",
     {.of = "peaks", .prior = share_prior(4, 0.50, Owner::kernels)}},
    {"cache_bandwidth",
     &Reached::cache_bandwidth,
     "of what streams through caches sustain",
     {.of = "sustained.cache_bandwidth", .prior = share_prior(7, 0.20, Owner::kernels)}},
    {"matmul_overlap",
     &Reached::matmul_overlap,
     "of one resource's time in products, that hides behind another's equal time",
     {.of = "time", .prior = share_prior(8, 0.50, Owner::kernels)}},
    {"overlap",
     &Reached::overlap,
     "the same of all other kernels",
     {.of = "time", .prior = share_prior(9, 0.50, Owner::kernels)}},
    {"block_lookup",
     &Reached::block_lookup,
     "from an entry of the block table to an address, beside the load of the entry",
     {.prior = time_prior(10, 1.00, Owner::kernels)}},
    {"counted_kernels",
     &Reached::counted_kernels,
     "of the launched kernels, that the plan counts; the others copy, cast and fill",
     {.of = "launches", .prior = share_prior(11, 0.50, Owner::program)}},
    {"undisturbed",
     &Reached::interference_free,
     "part of a short served step's time that is free of interference by other processes",
     {.of = "time"}},
});

// A figure of a stack's file; its key has the section before a dot.
struct StackField {
  using Member = std::variant<double Stack::*, Seconds Stack::*, std::optional<Seconds> Stack::*, int Stack::*,
                              int Graphs::*, double lower::UnfusedWork::*, int lower::UnfusedWork::*,
                              double lower::EntryWork::*, int lower::EntryWork::*>;

  template <class T, class Part>
  constexpr StackField(std::string_view key, T Part::*figure, std::string_view meaning, const FigureTraits& traits = {})
      : info(figure_info<T>(key, meaning, traits)), member(figure) {}

  // "host" of "host.per_step"; nothing of a figure of the file itself.
  [[nodiscard]] constexpr std::string_view section() const {
    const std::size_t dot = info.key.find('.');
    return dot == std::string_view::npos ? std::string_view() : info.key.substr(0, dot);
  }
  // "per_step" of "host.per_step"
  [[nodiscard]] constexpr std::string_view name() const { return info.key.substr(info.key.find('.') + 1); }

  FigureInfo info;
  Member member;
};

inline constexpr auto kStackFigures = std::to_array<StackField>({
    {"kernels_per_op",
     &Stack::kernels_per_op,
     "launches for one of the plan's kernels",
     {.unit = "launches", .bounds = between(0.1, 100)}},
    {"host.per_step", &Stack::host_per_step, "time between steps", {.absent = "the machine file's"}},
    {"host.per_sequence",
     &Stack::host_per_sequence,
     "time between steps for each sequence",
     {.absent = "the machine file's"}},
    {"host.per_request", &Stack::host_per_request, "to read a request, one after the other, before the engine has it"},
    {"host.per_prompt_token", &Stack::host_per_prompt_token,
     "to make tokens of a request's text, one request after the other, before the engine has it"},
    {"host.steps_ahead", &Stack::host_steps_ahead,
     "1: a step is scheduled when the one before it begins, not when it ends, so that the device need not wait, and "
     "who arrives meanwhile waits a step longer"},
    {"host.per_block", &Stack::host_per_block,
     "that the host takes for each block of a step's sequences, where it copies their block tables"},
    {"host.per_kernel", &Stack::host_per_kernel,
     "that the host takes to launch a kernel that is in no graph, while the device runs those before"},
    {"sampler.per_step", &Stack::sampler_per_step,
     "that the device takes to find the likeliest tokens, of a step with requests that ask for top-k or top-p"},
    {"sampler.per_logit", &Stack::sampler_per_logit, "the same for each logit of the step's rows"},
    {"graphs.decode_sequences",
     &Graphs::decode_sequences,
     "up to how many sequences a decode (with [drafts](#several-new-tokens): new tokens of all) is replayed as a "
     "graph, without launches by the host. 0: none",
     {.unit = "sequences", .bounds = kCountsFromZero}},
    {"graphs.prefill_tokens",
     &Graphs::prefill_tokens,
     "up to how many new tokens a step with prefills is replayed as a graph. 0: none",
     {.unit = "tokens", .bounds = kCountsFromZero}},
    {"unfused.activation_scale",
     &lower::UnfusedWork::activation_scale,
     "bytes of activations moved, over the plan's",
     {.unit = dculab::unit::ratio, .bounds = between(1, 64)}},
    {"unfused.bytes_per_score",
     &lower::UnfusedWork::bytes_per_score,
     "of prefill attention whose scores go through memory",
     {.unit = "bytes", .bounds = between(0, 64)}},
    {"unfused.bytes_per_widened_weight",
     &lower::UnfusedWork::bytes_per_widened_weight,
     "of weights of less than 16 bits that are widened into memory before matrix cores take them",
     {.unit = "bytes", .bounds = between(0, 64)}},
    {"unfused.widened_from_rows",
     &lower::UnfusedWork::widened_from_rows,
     "they are widened in products of at least so many rows",
     {.unit = "rows", .bounds = between(0, kLongestContext)}},
    {"entries.compress_kernels",
     &lower::EntryWork::compress_kernels,
     "of [models with compressed entries](../docs/reference/model.md#compressed-attention): launches to make a "
     "layer's entries",
     {.unit = "launches"}},
    {"entries.index_kernels",
     &lower::EntryWork::index_kernels,
     "launches for its indexer between the product of its queries and the choice of entries",
     {.unit = "launches"}},
    {"entries.half_kernels",
     &lower::EntryWork::half_kernels,
     "launches beside the plan's kernels for each half of a layer with residual streams",
     {.unit = "launches", .bounds = kCountsFromZero}},
    {"entries.scored_entries",
     &lower::EntryWork::scored_entries,
     "that an indexer's kernel scores of each decoding sequence, where it does not stop at those that the sequence "
     "has. 0: it does",
     {.unit = "entries", .bounds = between(0, kLongestContext)}},
    {"unfused.bytes_per_absorbed_weight",
     &lower::UnfusedWork::bytes_per_absorbed_weight,
     "that MLA's up-projections take where they are absorbed into queries and outputs, if that is more than they are "
     "stored in: a copy beside the stored ones",
     {.unit = "bytes", .bounds = between(0, 4)}},
});

// Calls use(figure) with what the field means in `stack`.
template <class OfStack, class Use>
auto visit_figure(OfStack& stack, const StackField& field, Use use) {
  return std::visit(
      [&]<class Part, class T>(T Part::*member) {
        if constexpr (std::is_same_v<Part, Stack>)
          return use(stack.*member);
        else if constexpr (std::is_same_v<Part, Graphs>)
          return use(stack.graphs.*member);
        else if constexpr (std::is_same_v<Part, lower::EntryWork>)
          return use(stack.kernels.entries.*member);
        else
          return use(stack.kernels.unfused.*member);
      },
      field.member);
}

}  // namespace dculab::sim
