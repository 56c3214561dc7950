// Where the shipped machines, models and scenarios are: a name becomes a path.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dculab::study {

// Folders that may hold hwmodels/ and scenarios/: $DCULAB_DATA, the working folder, and what is shipped: next to the
// installed program, then the source tree that the program was built from.
[[nodiscard]] std::vector<std::filesystem::path> data_folders();

// The page of `dculab page`: installed beside those, or built in the source tree by the preset `web`.
[[nodiscard]] std::optional<std::filesystem::path> find_lab_page();
// For who is no program: what is shipped is in `folder`. To be called before other threads look for anything.
void set_shipped_data(const std::filesystem::path& folder);

// Names of what is shipped are found in any case. Where there is none, InputError says which may be meant.

// A folder with config.json or that file, a file in GGUF, a name under scenarios/models, or the name that one of those
// has on the Hub ("Meta-Llama-3-8B", with its owner or without); also with the suffix of a tuned model ("-Instruct").
// Throws InputError, also that names the option which writes a file of this model.
[[nodiscard]] std::filesystem::path find_model(const std::string& name_or_folder);

// What a serving program loads the model by: a shipped one's name on the Hub, "Qwen/Qwen3-8B", or that of a tuned one
// that was given; else what was given.
[[nodiscard]] std::string checkpoint_of(const std::string& name_or_folder);

// A YAML file, or a name under hwmodels. Throws InputError.
[[nodiscard]] std::filesystem::path find_machine(const std::string& name_or_file);

// A YAML file, or a name under scenarios. Throws InputError.
[[nodiscard]] std::filesystem::path find_scenario(const std::string& name_or_file);

// The same without the exception: nothing when there is none.
[[nodiscard]] std::optional<std::filesystem::path> try_find_model(const std::string& name_or_folder);
// A stack file, by its path; names are of shipped ones (scenario/stacks.hpp).
[[nodiscard]] std::optional<std::filesystem::path> try_find_stack_file(const std::string& path);
// The file of a shipped stack, by its name.
[[nodiscard]] std::optional<std::filesystem::path> try_find_stack(const std::string& name);
// The stack files of all data folders; of two with one name the first.
[[nodiscard]] std::vector<std::filesystem::path> stack_files();
[[nodiscard]] std::vector<std::string> stack_names();

[[nodiscard]] std::optional<std::filesystem::path> try_find_machine(const std::string& name_or_file);
// All names under hwmodels, scenarios/models and scenarios, each in order; of scenarios in folders "serving/NAME".
[[nodiscard]] std::vector<std::string> machine_names();
[[nodiscard]] std::vector<std::string> model_names();
[[nodiscard]] std::vector<std::string> scenario_names();
[[nodiscard]] std::optional<std::filesystem::path> try_find_scenario(const std::string& name_or_file);

}  // namespace dculab::study
