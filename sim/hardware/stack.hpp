// A serving program and version on a kind of device: whose kernels run a step, what the program does unless told
// otherwise, and what it adds to the kernels' time. Files are `stacks/*.yaml`, read by config/stack_file.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "core/units.hpp"
#include "lower/device.hpp"
#include "lower/kernel_library.hpp"
#include "sim/hardware/reached.hpp"

namespace dculab::sim {

// How several devices share a model.
enum class Split : std::uint8_t {
  tensor,  // every layer over all devices, which work at the same time
  layers,  // whole layers on each device, one device working at a time
};

// Devices that a stack is for. Empty lists: all.
struct DeviceRange {
  std::vector<lower::Vendor> vendors;
  std::vector<std::string> isas;                  // "gfx928"
  std::vector<std::string> compute_capabilities;  // "9.0"
};

// What the program does unless told otherwise.
struct ProgramDefaults {
  int block_size = 16;
  int max_num_seqs = 256;
  int max_num_batched_tokens = 2048;
};

// Sizes and formats that the program takes, beside what its kernels do. Empty lists: all.
struct ProgramLimits {
  std::vector<int> block_sizes;
  std::vector<Dtype> kv_cache_dtypes;
  std::vector<Dtype> weight_dtypes;
  int max_num_seqs = 0;  // 0: any
  bool alibi = true;     // whether it passes ALiBi's slopes to kernels
};

// Steps whose kernels the device replays as a graph, so that no host launches them one by one; 0: none.
struct Graphs {
  int decode_sequences = 0;  // most sequences of a step of decodes
  int prefill_tokens = 0;    // most new tokens of a step with prefills, with or without decodes
};

struct Stack {
  std::string name = "dculab";
  std::string program = "dculab";  // stacks of one program on several kinds of devices share it
  std::string description = "kernels/cpu and kernels/gpu of this project";
  int age = 0;  // of stacks of a program the youngest runs a device, unless another is named: 0 is today's
  DeviceRange devices;
  lower::Kernels kernels;
  Reached reached;            // of a stack that runs on a machine, what both say: see stack_on
  double kernels_per_op = 1;  // that the program launches for one of ours
  Split split = Split::tensor;
  ProgramDefaults defaults;
  ProgramLimits limits;
  bool frees_windows = false;  // of the KV cache, what no layer with a window sees any more
  // The machine's where they are not known.
  std::optional<Seconds> host_per_step;
  std::optional<Seconds> host_per_sequence;
  Graphs graphs;
  Seconds host_per_request;       // to read one, one after the other, before the engine has it
  Seconds host_per_prompt_token;  // the same: to make tokens of its text
  int host_steps_ahead = 0;       // 1: a step is scheduled when the one before it begins, and not when it ends
  Seconds host_per_block;         // of the KV cache, that a sequence of a step has
  Seconds host_per_kernel;        // to launch one that is in no graph, while the device runs those before
  Seconds sampler_per_step;       // on the device, of a step whose logits are filtered: StepPlan::filtered_logits
  Seconds sampler_per_logit;      // of those
  std::map<std::string, std::string> sources;  // key -> "kind: source"
  std::map<std::string, std::string> caveats;  // weight format -> what is known to be wrong of prices with it

  [[nodiscard]] Seconds reading_time(std::size_t prompt_tokens) const {
    return host_per_request + static_cast<double>(prompt_tokens) * host_per_prompt_token;
  }

  // Launches for one of the plan's kernels.
  [[nodiscard]] double launches_per_kernel() const { return kernels_per_op / reached.counted_kernels; }

  // Our own kernels: what they do not serve is priced as if they did, and said.
  [[nodiscard]] bool is_own() const { return kernels.attention_decode.empty(); }
};

[[nodiscard]] bool is_for(const Stack& stack, const lower::Device& device);

}  // namespace dculab::sim
