// Whose kernels a price is of: from the name of a stack to what runs on a machine.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/hardware/stack.hpp"

namespace dculab::study {

// All stack files of the data folders, by name.
[[nodiscard]] std::vector<sim::Stack> shipped_stacks();

// The stack of `stacks` that runs a program on `device`: `name` is a stack's or a program's, in any case. Throws
// InputError that says what is offered.
[[nodiscard]] const sim::Stack& choose_stack(std::span<const sim::Stack> stacks, const std::string& name,
                                             const sim::Machine& machine);

// The same among the shipped ones, or of a file, as it runs on the machine.
[[nodiscard]] sim::Stack resolve_stack(const std::string& name_or_file, const sim::Machine& machine);

// The stack that the scenario asks for on `machine`, without the figures that it changes.
void put_stack(const config::Scenario& scenario, sim::Machine& machine);
void apply_stack_figures(const config::Scenario& scenario, sim::Machine& machine);

// Whether two points run the same stack with the same figures.
[[nodiscard]] bool same_stack(const config::Scenario& one, const config::Scenario& other);
// The same, and change the same figures of their machines, which are named elsewhere.
[[nodiscard]] bool same_machine_figures(const config::Scenario& one, const config::Scenario& other);

// The files that say what a stack or a program of that name is; none for what needs no file.
[[nodiscard]] std::vector<std::filesystem::path> stack_files_of(const std::string& name_or_file);

// Sections of the machine file's `reached` that have no effect: neither its stack nor a shipped one, nor their
// programs, have such a name.
[[nodiscard]] std::vector<std::string> idle_reached(const sim::Machine& machine);

// "kernels of vllm-dtk: vLLM 0.18 on DCUs ..."
[[nodiscard]] std::string whose_kernels(const sim::Machine& machine);

// The same of the scenario's machines, each stack once; what a sweep over stacks has, it says itself.
[[nodiscard]] std::vector<std::string> whose_kernels(const config::Scenario& scenario);

// "vllm on h100-sxm, vllm-dtk on k100-ai": what each of the scenario's machines runs, those of its sweep too; empty
// where all run the same, or where the scenario compares stacks itself.
[[nodiscard]] std::string differing_stacks(const config::Scenario& scenario);

}  // namespace dculab::study
