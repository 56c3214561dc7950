// A question about requests by options instead of a scenario file: a model, machines and a load.
#pragma once

#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "fields/node.hpp"

namespace dculab::study {

// Empty and 0: not given.
struct LoadQuestion {
  std::string model{}, stack{}, weights{}, kv_cache_dtype{}, ttft{}, tpot{}, requests_per_second{};
  std::vector<std::string> machines{};
  std::string dataset_path{};  // recorded requests, or conversations
  int requests = 0, prompt_tokens = 0, output_tokens = 0;
  std::vector<std::string> set{};  // key=value, any scenario key; before the stack, which keeps the figures set of one
};

// The scenario that stands behind `--set`: an option of several words takes all up to the next option, so in
// "--set a=1 b.yaml" the last word is one. It is taken out of the question; empty where there is none.
[[nodiscard]] std::string take_scenario(LoadQuestion& question);

// Whether anything but `set` and the stack is given, which can stand beside a file.
[[nodiscard]] bool is_given(const LoadQuestion& question);

// The document of a scenario, a file or a name, with the question's changes. Without one the question stands alone: 256
// requests of 1024 + 256 tokens that come at once, unless it says otherwise. Throws InputError, also for a question
// alone without model or machine.
[[nodiscard]] Node document_of(const std::string& scenario, const LoadQuestion& question);

// How messages name a question alone.
inline constexpr const char* kCommandLine = "command line";

}  // namespace dculab::study
