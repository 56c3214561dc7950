// stacks/*.yaml <-> sim::Stack: which kernel libraries run a program's ops, and what else it does. Every figure carries
// its kind (spec, measured, fitted, assumed) and its source; the keys are described in stacks/SCHEMA.md.
#pragma once

#include <string>
#include <string_view>

#include "sim/hardware/stack.hpp"

namespace dculab::config {

inline constexpr std::string_view kStackSchema = "dculab/stack/1";

// Throws InputError with every problem of the file.
[[nodiscard]] sim::Stack read_stack_file(const std::string& path);
[[nodiscard]] sim::Stack read_stack(const std::string& file, const std::string& yaml);

// YAML that reads back as the same stack: figures without a source are defaults.
[[nodiscard]] std::string stack_yaml(const sim::Stack& stack);

}  // namespace dculab::config
