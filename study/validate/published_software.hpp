// What published names of programs and kernel libraries are priced as: one table.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/hardware/machine.hpp"
#include "sim/hardware/stack.hpp"

namespace dculab::study {

// How a publication times a kernel.
enum class KernelTiming : std::uint8_t {
  alone,              // in a loop
  after_cache_write,  // an attention layer: after the kernel that writes new K and V to the cache
  in_turn,            // with the other products of a layer: no cache has its weights
};

// Where a kernel finds K and V when nothing is said of blocks.
enum class KvLayout : std::uint8_t { paged, contiguous };

// Kernels of a library, as stack files name them; empty: it has none.
struct LibraryKernels {
  std::string_view matmul, attention_prefill, attention_decode, all_reduce, experts{};
};

struct PublishedSoftware {
  std::string_view begins;  // how names begin, in lower case; the longest row that has something for the machine counts
  // What a calibration learns of it is learned of all rows with this name. Where it is not the stack's program it is
  // the name of a stack of its own, with the same kernels.
  std::string_view engine;
  std::array<std::string_view, 4> stacks{};  // the first that is for the machine; none: a kernel library
  LibraryKernels kernels{};
  KernelTiming timing = KernelTiming::alone;
  KvLayout layout = KvLayout::paged;
  std::string_view note{};        // where other kernels stand for its own
  std::string_view silent{};      // why its rows teach nothing; "" if they do
  std::string_view parameters{};  // of its kernel of decode attention, where a point does not state them

  [[nodiscard]] bool is_library() const { return stacks.front().empty(); }
};

[[nodiscard]] std::span<const PublishedSoftware> published_software();

// The row of `software` on `machine`. Throws InputError where there is none.
[[nodiscard]] const PublishedSoftware& find_software(const std::string& software, const sim::Machine& machine,
                                                     std::span<const sim::Stack> stacks);

// "vLLM 0.14.0 vllm_flash_attn" -> "vLLM", "llama.cpp-gfx906 repack" -> "llama.cpp"; what is in no row: its first word.
[[nodiscard]] std::string engine_of(const std::string& software);

// `machine` with what that row runs on it: a stack of `stacks`, or a library's kernels.
[[nodiscard]] sim::Machine as_run_by(const PublishedSoftware& row, sim::Machine machine,
                                     std::span<const sim::Stack> stacks);

// What the rows run that is no stack's file as it is: kernels of libraries, and stacks under another program's name.
[[nodiscard]] std::vector<sim::Stack> library_stacks(std::span<const sim::Stack> stacks);

}  // namespace dculab::study
