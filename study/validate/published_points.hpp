// From a published point to what the simulator prices: names become machines and shapes, figures become recipes.
//
//   request_latency      all requests of the batch submitted at once, until the last ends
//   offline_output_rate  the same with as many sequences as fit; output tokens / time
//   ttft                 the same with one output token
//   prefill_rate         one prompt in chunks (context_tokens, where given: the micro-batch)
//   decode_rate          steps with contexts from context_tokens - output_tokens to context_tokens
//   matmul, attention_*  the kernel in a loop
//
// What an engine of that name does by default (chunk sizes, sequences) comes with its stack; what it says about itself
// elsewhere is not used.
#pragma once

#include <span>
#include <string>

#include "config/points_file.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/hardware/stack.hpp"
#include "sim/study/recipe.hpp"

namespace dculab::study {

struct PricedAs {
  sim::Recipe recipe;
  std::string note;  // where what is priced differs from what was published; "" otherwise
};

// "vLLM 0.14.0 vllm_flash_attn" -> "vLLM", "llama.cpp-gfx906 repack" -> "llama.cpp": the program without version and
// build; one that nothing is known of in lower case.
[[nodiscard]] std::string engine_of(const std::string& software);

// `machine` with the stack of `stacks` whose `published_as` the software begins with, the longest one; of a program
// that none has, a vendor's products and FlashAttention.
[[nodiscard]] sim::Machine as_run_by(const std::string& software, sim::Machine machine,
                                     std::span<const sim::Stack> stacks);

// Throws InputError with the reason why the point cannot be priced.
[[nodiscard]] PricedAs price_as(const config::PublishedPoint& point, const sim::Machine& machine);

}  // namespace dculab::study
