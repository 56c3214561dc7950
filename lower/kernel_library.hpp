// Kernel libraries: which shapes their kernels serve, and how they cut the work. One folder each; a stack
// (sim/hardware/stack.hpp) says which of them run its ops.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/op.hpp"
#include "core/step_plan.hpp"
#include "lower/attention_walk.hpp"
#include "lower/device.hpp"
#include "lower/kernel_parameter.hpp"
#include "lower/launch.hpp"

namespace dculab::lower {

// Of y, that one workgroup computes.
struct MatmulTile {
  int rows = 1;
  int columns = 1;
};

// A format of weights that a product kernel takes, and how it takes activations with them.
struct ProductFormat {
  Dtype weights = Dtype::f16;
  ActivationMode activations = ActivationMode::exact;
  bool has_row_scales = false;          // one scale for each row of w alone: they are applied to the sums
  int most_rows = 0;                    // of x that it serves; 0: all
  bool (*on)(const Device&) = nullptr;  // the devices of the kernel that have it; none: all
};

// Pieces of k that a workgroup fetches one after the other.
struct Slabs {
  Bytes depth;    // of a row of x
  int ahead = 1;  // of the one that is multiplied
};

// Operands of another format are widened by the instructions that multiply.
struct Multiplied {
  Dtype in = Dtype::f16;
  double instructions = 1;  // for each multiply-add
};

// A kernel without matrix instructions each of whose workgroups takes a slice of k and adds its sums to y in memory.
struct Slices {
  int depth = 0;           // values of k; 0: no slices
  double per_weight = 0;   // lane instructions that widen one, in each pass over the weights,
  double per_product = 0;  // and that multiply it by a row
  KernelResources resources{};
  Spills spills{};  // of a workgroup
};

// A product that a kernel does without matrix instructions.
struct VectorProduct {
  double issued = 0;          // lane instructions of all workgroups, multiply-adds among them; 0: not counted
  double waves_to_fill = 1;   // of a SIMD (Arithmetic::waves_to_fill)
  double workgroups = 0;      // before k is split; 0: not known, as many as fill the device of a few rows
  double loads_before = 0;    // of a workgroup, that wait for one another
  bool wave_by_wave = false;  // a wave waits for what it multiplies: others on its SIMD hide that
};

// Who rounds the activations that a kernel multiplies in 8 bits: it does, a kernel that is launched before it, or the
// op before as it writes them, at no cost that is counted.
enum class Rounding : std::uint8_t { itself, kernel_before, op_before };

struct MatmulKernel {
  std::string_view name;    // as stack files have it
  std::string_view source;  // where the figures are from
  // Rows of x up to which it is a matrix-vector product, whose kernel hands out rows of w until the device is full.
  int (*gemv_rows)(const Device&);
  bool (*runs_on)(const Device&);
  std::span<const ProductFormat> formats{};  // empty: all
  MatmulTile (*tile)(const Op&, const Device&);
  // Into how many parts it splits a product by tiles along k; 0 or none: as is cheapest, of what a GEMM library may do.
  int (*parts)(const Op&, const Device&) = nullptr;
  // How it stages what a tile needs; none: as many loads are under way as its waves may have.
  Slabs (*slabs)(const Device&) = nullptr;
  // What it multiplies in; none: the format of the activations.
  Multiplied (*multiplied)(const Op&, const Device&) = nullptr;
  // How it multiplies on vector units; none, or nothing for an op: on whatever the machine has that is faster.
  std::optional<VectorProduct> (*on_vector_units)(const Op&, const Device&) = nullptr;
  // How it slices k; none: it does not.
  Slices (*slices)(const Op&, const Device&) = nullptr;
  Rounding rounding = Rounding::itself;
  // Lane instructions for each weight of a kernel before, which widens all of them into memory; 0: there is none.
  double widening = 0;
};

// How a launch does the products of all experts: in tiles of one expert's rows each, which go through k in slabs.
struct ExpertTile {
  int rows = 16;  // a power of two, up to 256
  int columns = 32;
  Bytes depth;              // of a slab, of a row of x
  int ahead = 1;            // slabs that are under way beside the one that is multiplied; 0: the next one waits for it
  double per_value = 0;     // lane instructions that bring a value of a slab, padding too, to the matrix units,
  double per_weight = 0;    // and that widen a weight; 0: conversions as counted for all kernels
  double parts = 1;         // of k, each a tile's own workgroup
  double loads_before = 0;  // that wait for one another before a workgroup's first slab
  KernelResources resources{};
};

// Of programs that sort tokens by expert and multiply for all experts in one launch.
struct ExpertKernel {
  std::string_view name;
  std::string_view source;
  bool (*runs_on)(const Device&);
  std::span<const ProductFormat> formats{};  // empty: all
  ExpertTile (*tile)(const Op&, std::int64_t tokens, const Device&);
  int sorting_kernels = 2;             // launched to choose experts and to sort the rows by them
  double sorting_loads_of_expert = 0;  // loads and stores in memory, for each expert, that wait for one another
  int sorts_in_scratchpad_below = 0;   // with fewer experts one workgroup sorts, a thread an expert
  int most_vector_tokens = 0;          // of a step, up to which a kernel for vectors does the products instead
  bool waits = false;                  // a workgroup waits for a slab before it works on it
};

// Whether a kernel adds ALiBi's slopes to the scores.
enum class Alibi : std::uint8_t { takes, no, unknown };

// Whether an attention kernel takes MLA's latents, whose values are a part of their keys; or a window and compressed
// entries, whose values are their keys.
enum class Latents : std::uint8_t { no, takes, only, entries };

// Which shapes an attention kernel serves. Empty lists and zeros: all.
struct AttentionLimits {
  int block_multiple = 1;
  std::span<const int> block_sizes{};
  int head_dim_multiple = 1;
  int most_head_dim = 0;
  std::span<const int> head_dims{};
  int most_group = 0;  // query heads of a KV head
  std::span<const Dtype> kv_dtypes{};
  Alibi alibi = Alibi::takes;  // where unknown, it is served, and said
  Latents latents = Latents::no;
  std::optional<Phase> only{};  // the phase that it is for; none: both
  // New tokens of a sequence that decodes, at most: drafts are verified several at a time. A program runs those that no
  // kernel of its list for decodes takes as it runs prefills.
  int most_new_tokens = 0;
};

struct AttentionKernel {
  std::string_view name;
  std::string_view source;
  AttentionLimits limits;
  bool (*runs_on)(const Device&);
  AttentionTile (*tile)(const Op&, const StepPlan&, const Device&, const ParameterChoices&);
  // Partial results of a split context that the combining pass has asked for before it waits; 0: it does not wait.
  int combines_at_a_time = 0;
  std::span<const KernelParameter> parameters{};
};

// Of devices that share a model.
struct CollectiveKernel {
  std::string_view name;
  std::string_view source;
  bool (*serves)(const Op&, const Device&);
  void (*add_ways)(const Op&, const Device&, Exchanges&);
};

// Of devices that share routed experts.
struct ExchangeKernel {
  std::string_view name;
  std::string_view source;
  bool (*serves)(const Op&, const Device&);
  TokenTransfer (*transfer)(const Op&, const Device&);
};

// What a program moves through memory that the plan's fused kernels keep to themselves.
struct UnfusedWork {
  double activation_scale = 1;           // bytes of activations read and written, over the plan's
  double bytes_per_score = 0;            // of prefill attention whose scores are written and read again
  double bytes_per_widened_weight = 0;   // of weights that are widened into memory before matrix cores multiply them
  int widened_from_rows = 0;             // least rows of a matmul whose weights are widened
  double bytes_per_absorbed_weight = 0;  // of MLA's up-projections, widened when they are read from the checkpoint
};

// How a program runs models with compressed entries and residual streams (DeepSeek-V4), where its kernels are not those
// of the plan.
struct EntryWork {
  int compress_kernels = 1;   // launched to make the entries of a layer
  int index_kernels = 1;      // likewise for its indexer, between the product of its queries and the choice of entries
  int half_kernels = 0;       // beside those of the plan, for each half of a layer: PyTorch's own, value by value
  double scored_entries = 0;  // of each decoding sequence, by kernels that do not stop at its last one; 0: those it has
};

// The first of a list that serves an op runs it, what none of all_reduce serves the vendor's library; an empty list
// stands for our own kernels, which serve every shape that the engine runs. What none of `experts` serves is the
// product of each expert by `matmul`.
struct Kernels {
  std::vector<const MatmulKernel*> matmul;
  std::vector<const AttentionKernel*> attention_prefill;
  std::vector<const AttentionKernel*> attention_decode;
  std::vector<const CollectiveKernel*> all_reduce{};
  std::vector<const ExpertKernel*> experts{};
  UnfusedWork unfused{};
  EntryWork entries{};
  ParameterChoices parameters{};
};

[[nodiscard]] std::span<const MatmulKernel* const> matmul_kernels();
[[nodiscard]] std::span<const AttentionKernel* const> attention_kernels();
[[nodiscard]] std::span<const CollectiveKernel* const> collective_kernels();
[[nodiscard]] std::span<const ExpertKernel* const> expert_kernels();

[[nodiscard]] bool serves(const MatmulKernel& kernel, const Op& op, const Device& device);
[[nodiscard]] bool serves(const AttentionKernel& kernel, const Op& op, const Device& device);
[[nodiscard]] bool serves(const CollectiveKernel& kernel, const Op& op, const Device& device);
// `tokens`: of the step.
[[nodiscard]] bool serves(const ExpertKernel& kernel, const Op& op, std::int64_t tokens, const Device& device);

// How products with such weights take the activations: as the checkpoint asks where product kernels of the program do
// so on the device, and its kernels of experts where the model has any; else as they are.
[[nodiscard]] ActivationMode activations_of(const Kernels& kernels, WeightFormat weights, ActivationMode asked,
                                            bool has_experts, const Device& device);

// Beside shapes: "takes weights of f16, fp8_e4m3 on some devices", "takes no ALiBi".
[[nodiscard]] std::string what_it_takes(const MatmulKernel& kernel);
[[nodiscard]] std::string what_it_takes(const AttentionKernel& kernel);
[[nodiscard]] std::string what_it_takes(const ExpertKernel& kernel);

// What keeps the kernel from serving an op; empty when it does: "takes block sizes of multiples of 16".
[[nodiscard]] std::string why_not(const MatmulKernel& kernel, const Op& op, const Device& device);
[[nodiscard]] std::string why_not(const AttentionKernel& kernel, const Op& op, const Device& device);

// That runs `op`: the last of the list where none serves it. Of decodes with several new tokens the first for prefills
// that serves them, before that.
[[nodiscard]] const MatmulKernel& matmul_kernel_of(const Kernels& kernels, const Op& op, const Device& device);
[[nodiscard]] const AttentionKernel& attention_kernel_of(const Kernels& kernels, const Op& op, const Device& device);

// The first that serves `op`; NCCL where none does, on AMD's and Hygon's devices RCCL, and on CPUs shared memory.
[[nodiscard]] const CollectiveKernel& collective_kernel_of(const Kernels& kernels, const Op& op, const Device& device);

// That runs the products or the choice of experts on a GPU, in a step of `tokens` tokens; null: `matmul` does.
[[nodiscard]] const ExpertKernel* expert_kernel_of(const Kernels& kernels, const Op& op, std::int64_t tokens,
                                                   const Device& device);

// DeepEP's, of few tokens those without delay: no other program's kernels are known. On CPUs ours, by shared memory.
[[nodiscard]] const ExchangeKernel& exchange_kernel_of(const Op& op, const Device& device);

// The kernel that runs `op`: one of these, or none where every program does it alike.
struct ChosenKernel {
  const MatmulKernel* matmul = nullptr;
  const AttentionKernel* attention = nullptr;
  const CollectiveKernel* collective = nullptr;
  const ExchangeKernel* exchange = nullptr;
};
[[nodiscard]] ChosenKernel kernel_for(const Kernels& kernels, const Op& op, const Device& device);

// Whether a stack's kernels are our own: whose products are ours, so is the rest.
[[nodiscard]] bool are_ours(const Kernels& kernels);

// The bytes that every device has when a collective is done.
[[nodiscard]] Bytes result_of(const Op& collective);

// Whether each of the op's devices reaches every other in one hop.
[[nodiscard]] bool are_directly_linked(const Op& collective, const Device& device);

// Whether the attention is of decodes, of which one at least has several new tokens.
[[nodiscard]] bool has_several_new_tokens(const Op& op);

// Query heads of one KV head: where groups differ, their mean, rounded up.
[[nodiscard]] inline int group_size(const AttentionWork& work) {
  const int whole = work.num_query_heads / work.num_kv_heads;
  return whole > 0 && work.num_query_heads % work.num_kv_heads != 0 ? whole + 1 : whole;
}

[[nodiscard]] bool runs_anywhere(const Device& device);
[[nodiscard]] bool runs_on_gpus(const Device& device);

}  // namespace dculab::lower
