// The simulator as one function from a question to its answer, both JSON: what the page calls as WebAssembly, and tests
// as a native program.
#pragma once

#include <string>

namespace dculab::web {

// `question`: {"ask": ..., "scenario": {...}}, the scenario with the keys of a scenario file (`schema` and `question`
// may be left out). `ask` is one of
//
//   predict    the workload's step                        the document of `dculab predict --format json`
//   step       the same without its input sensitivity, which takes most of the time
//   study      a sweep of steps, with `sweep`             that of `dculab study`
//   points     its points alone, without intervals, recommendation and input sensitivities
//   footprint  weights and KV cache of the model and of   that of `dculab tables footprint`
//              others like it, workload.batch sequences of workload.context_tokens
//
// or {"ask": "names"}: {"models": [...], "machines": {name: [stacks that are for it]}, "stacks": {name: {"block_size":
// the usual one, "block_sizes": [those that its kernels take; none: all]}}, "kv_formats": [...]}.
// Files of machines and stacks must not change after the first question: each is read once.
// Of a question that has no answer: {"error": "what a command would print"}. Throws nothing but std::bad_alloc.
[[nodiscard]] std::string answer(const std::string& question);

}  // namespace dculab::web
