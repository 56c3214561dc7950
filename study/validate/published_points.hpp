// From a published point to what the simulator prices: names become machines and shapes, figures become measured runs.
//
//   request_latency      all requests of the batch submitted at once, until the last ends
//   offline_output_rate  the same with as many sequences as fit; output tokens / time
//   ttft                 the same with one output token
//   prefill_rate         one prompt in chunks (context_tokens, where given: the micro-batch)
//   decode_rate          steps with contexts from context_tokens - output_tokens to context_tokens
//   serving_output_rate  requests that wait for one of `batch` places, each given on as soon as it is free
//   matmul, attention_*, all_reduce   the kernel in a loop
//   those of hardware    sim/study/machine_probe.hpp
//
// What an engine of that name does by default (chunk sizes, sequences) comes with its stack; what it says about itself
// elsewhere is not used.
#pragma once

#include <string>

#include "config/points_file.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/study/measured_run.hpp"
#include "sim/study/serving_run.hpp"
#include "study/validate/published_software.hpp"

namespace dculab::study {

struct PricedAs {
  sim::MeasuredRun measured_run;
  std::string note;    // where what is priced differs from what was published; "" otherwise
  std::string silent;  // why it is scored but teaches no file: other kernels stand for most of its own; "" otherwise
};

// The program of machine.stack with the point's model, formats and sizes. Throws InputError with the reason why it
// cannot be priced.
[[nodiscard]] sim::Server published_server(const config::PublishedPoint& point, const sim::Machine& machine);

// `software` is null for what is_of_hardware. Throws InputError with the reason why the point cannot be priced.
[[nodiscard]] PricedAs price_as(const config::PublishedPoint& point, const sim::Machine& machine,
                                const PublishedSoftware* software);

}  // namespace dculab::study
