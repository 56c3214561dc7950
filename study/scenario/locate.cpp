#include "study/scenario/locate.hpp"

#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/scenario_file.hpp"
#include "core/error.hpp"
#include "fields/near_words.hpp"
#include "files/input.hpp"
#include "model/folder/model_config.hpp"
#include "study/scenario/hub_name.hpp"
#include "study/scenario/named_files.hpp"

namespace dculab::study {
namespace fs = std::filesystem;
namespace {

// One kind of shipped thing: where it is kept and how a name becomes a file.
struct Kind {
  const char* what;    // for messages
  const char* folder;  // below a data folder
  const char* suffix;  // "" for folders
  const char* option;
};

constexpr Kind kModel{"model", "scenarios/models", "", "--model"};
constexpr Kind kMachine{"machine", "hwmodels", ".yaml", "--machine"};
constexpr Kind kScenario{"scenario", "scenarios", ".yaml", "the scenario argument"};

[[nodiscard]] bool is_one(const fs::path& path, const Kind& kind, std::error_code& error) {
  if (*kind.suffix == '\0' && path.extension() == kGgufSuffix) return fs::is_regular_file(path, error);
  if (*kind.suffix == '\0') return fs::is_regular_file(path / "config.json", error);
  return files::is_handed_over(path.native()) || fs::is_regular_file(path, error);
}

// Stacks and machines lie beside the scenarios that need them.
[[nodiscard]] bool is_scenario(const fs::path& file) {
  try {
    return files::read_text(file.string(), files::kLargestText).find(config::kScenarioSchema) != std::string::npos;
  } catch (const InputError&) {  // refused where it is asked for
    return false;
  }
}

void add_names(const fs::path& folder, const Kind& kind, std::set<std::string>& names) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (is_one(entry.path(), kind, ignored) && (*kind.suffix == '\0' || entry.path().extension() == kind.suffix))
      names.insert(*kind.suffix == '\0' ? entry.path().filename().string() : entry.path().stem().string());
}

// Scenarios in folders have the folder in their names: "serving/llama3_on_z100".
void add_scenario_names(const fs::path& folder, std::set<std::string>& names) {
  std::error_code ignored;
  const auto options = fs::directory_options::skip_permission_denied;
  for (const auto& entry : fs::recursive_directory_iterator(folder, options, ignored))
    if (entry.path().extension() == kScenario.suffix && entry.is_regular_file(ignored) && is_scenario(entry.path()))
      names.insert(entry.path().lexically_relative(folder).replace_extension().string());
}

[[nodiscard]] std::set<std::string> names_of(const Kind& kind) {
  std::set<std::string> names;
  for (const fs::path& data : data_folders())
    if (&kind == &kScenario)
      add_scenario_names(data / kind.folder, names);
    else
      add_names(data / kind.folder, kind, names);
  return names;
}

[[nodiscard]] std::vector<std::string> listed(const Kind& kind) {
  const std::set<std::string> names = names_of(kind);
  return {names.begin(), names.end()};
}

// What a model's SOURCE begins with: "meta-llama/Meta-Llama-3-8B; written by hand ..." Empty where it has none.
[[nodiscard]] std::string hub_name(const fs::path& model) {
  constexpr std::size_t kLongestSource = 1 << 16;
  std::error_code ignored;
  if (!fs::is_regular_file(model / "SOURCE", ignored)) return {};
  const std::string text = files::read_text((model / "SOURCE").string(), kLongestSource);
  return text.substr(0, text.find_first_of(";,: \n"));
}

// Whether `name` is a model's name on the Hub, with its owner or without; behind the owner its shipped name will do,
// too.
[[nodiscard]] bool is_hub_name(std::string_view name, std::string_view on_hub, std::string_view shipped) {
  const std::size_t owner_end = on_hub.find('/');
  if (owner_end == std::string_view::npos) return false;
  const std::size_t end = name.find('/');
  if (end != std::string_view::npos && !same_word(name.substr(0, end), on_hub.substr(0, owner_end))) return false;
  const std::string_view own = name.substr(end == std::string_view::npos ? 0 : end + 1);
  return same_word(own, on_hub.substr(owner_end + 1)) || same_word(own, shipped);
}

[[nodiscard]] std::optional<fs::path> try_find_by_hub_name(std::string_view name) {
  for (const fs::path& data : data_folders()) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(data / kModel.folder, ignored))
      if (is_hub_name(name, hub_name(entry.path()), entry.path().filename().native())) return entry.path();
  }
  return std::nullopt;
}

// Of which shipped model a name is a tuned one, "meta-llama/Llama-3.1-8B-Instruct".
[[nodiscard]] std::optional<fs::path> try_find_tuned(const std::string& name) {
  const std::string_view base = without_tuning(name);
  return base == name ? std::nullopt : try_find_by_hub_name(base);
}

// What to write for a model's name, which is without an owner.
[[nodiscard]] std::string model_guess(const std::string& name, const std::vector<std::string>& names) {
  if (const auto stored = stored_name(name))
    if (const auto base = try_find_by_hub_name(without_tuning(stored->base)))
      return "write --model " + base->filename().string() + " --weights " + std::string(stored->weights);
  return family_suggestion(name, names);
}

// Those that `asked` may stand for, or where to find them.
[[nodiscard]] std::string known_names(const Kind& kind, const std::string& asked) {
  const std::vector<std::string> names = listed(kind);
  if (names.empty()) return "none is shipped: set DCULAB_DATA to the folder that holds hwmodels/ and scenarios/";
  const bool is_model = &kind == &kModel;
  const std::string name = is_model ? asked.substr(asked.rfind('/') + 1) : asked;
  if (std::string guess = is_model ? model_guess(name, names) : ""; !guess.empty()) return guess;
  if (std::string guess = suggestion(name, names); !guess.empty()) return guess;
  return "`dculab list " + std::string(kind.what) + "s` has the " + std::to_string(names.size()) + " shipped ones";
}

[[nodiscard]] bool is_missing(const std::error_code& error) {
  return error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
}

// A shipped one whose name has other cases.
[[nodiscard]] std::optional<fs::path> try_find_in_any_case(const std::string& asked, const Kind& kind) {
  std::error_code ignored;
  for (const std::string& name : names_of(kind)) {
    if (!same_word(name, asked)) continue;
    for (const fs::path& data : data_folders())
      if (fs::path path = data / kind.folder / (name + kind.suffix); is_one(path, kind, ignored)) return path;
  }
  return std::nullopt;
}

// What is shipped is found also where the working folder may not be read, or is gone.
[[nodiscard]] std::optional<fs::path> try_find(const std::string& name, const Kind& kind) {
  std::error_code error, ignored;
  const fs::path path = name;
  if (is_one(path, kind, error)) return path;
  if (&kind == &kModel && path.filename() == "config.json" && is_one(path.parent_path() / ".", kind, ignored))
    return path.has_parent_path() ? path.parent_path() : ".";
  for (const fs::path& data : data_folders()) {
    const fs::path candidate = data / kind.folder / (name + kind.suffix);
    if (is_one(candidate, kind, ignored)) return candidate;
  }
  if (error && !is_missing(error)) throw fs::filesystem_error("", name, error);
  if (auto found = try_find_in_any_case(name, kind)) return found;
  if (&kind != &kModel) return std::nullopt;
  if (auto found = try_find_by_hub_name(name)) return found;
  return try_find_tuned(name);
}

// Why a path that is there is not one of a kind.
[[noreturn]] void refuse_path(const std::string& name, const Kind& kind) {
  if (*kind.suffix != '\0') throw InputError(name, std::string("is no file; give a ") + kind.what + "'s file or name");
  if (fs::is_directory(name))
    throw InputError(
        name, std::string("no config.json in this folder (") + kind.option + " takes a Hugging Face model folder)");
  throw InputError(name, std::string("is no model; ") + kind.option +
                             " takes a Hugging Face folder or its config.json, a file in GGUF (.gguf), or a name");
}

[[nodiscard]] fs::path find(const std::string& name, const Kind& kind) {
  if (const auto found = try_find(name, kind)) return *found;
  if (fs::exists(name)) refuse_path(name, kind);
  for (const char* const unit : {"s", "ms", "us", "GiB", "MiB"})
    if (name == unit)
      throw InputError("no " + std::string(kind.what) + " '" + name + "'; a value and its unit are one word: '2 " +
                       name + "' with quotes, or 2" + name);
  throw InputError(std::string("no ") + kind.what + " '" + name + "' (neither a " +
                   (*kind.suffix == '\0' ? "folder" : "file") + " nor a shipped name); " + known_names(kind, name));
}

// Of a package that ships the data in a place of its own; empty: none does.
[[nodiscard]] fs::path& shipped_data() {
  static fs::path folder;
  return folder;
}

}  // namespace

void set_shipped_data(const fs::path& folder) { shipped_data() = folder; }

std::string checkpoint_of(const std::string& name_or_folder) {
  const auto folder = try_find_model(name_or_folder);
  const std::string name = folder ? hub_name(*folder) : std::string();
  const std::size_t owner_end = name.find('/');
  if (owner_end == std::string::npos) return name_or_folder;
  if (std::error_code ignored;
      fs::exists(name_or_folder, ignored) || is_hub_name(name_or_folder, name, folder->filename().native()))
    return name;
  return (name_or_folder.find('/') == std::string::npos ? name.substr(0, owner_end + 1) : "") + name_or_folder;
}

std::vector<fs::path> data_folders() {
  std::vector<fs::path> folders;
  std::error_code error;
  const char* from_environment = std::getenv("DCULAB_DATA");
  if (from_environment != nullptr && *from_environment != '\0') {
    if (!fs::is_directory(from_environment, error))
      throw InputError("DCULAB_DATA=" + std::string(from_environment), "there is no such folder");
    folders.emplace_back(from_environment);
  }
  if (fs::path here = fs::current_path(error); !error) folders.push_back(std::move(here));
  if (!shipped_data().empty()) {
    folders.push_back(shipped_data());
    return folders;
  }
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) folders.push_back(program.parent_path().parent_path() / "share" / "dculab");
  folders.emplace_back(DCULAB_SOURCE_DIR);
  return folders;
}

std::optional<fs::path> find_lab_page() {
  std::error_code ignored;
  const fs::path here = fs::current_path(ignored);  // where copies of it are, too
  for (const fs::path& data : data_folders())
    for (const fs::path& page : {data / "build" / "web" / "lab.html", data / "lab.html"})
      if (page.parent_path() != here && fs::is_regular_file(page, ignored)) return page;
  return std::nullopt;
}

std::optional<fs::path> try_find_stack_file(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) ? std::optional<fs::path>(path) : std::nullopt;
}

std::optional<fs::path> try_find_stack(const std::string& name) {
  for (const fs::path& file : stack_files())
    if (same_word(file.stem().native(), name)) return file;
  return std::nullopt;
}

std::vector<fs::path> stack_files() {
  std::map<std::string, fs::path> files;
  for (const fs::path& data : data_folders()) {
    const fs::path folder = data / "stacks";
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (entry.path().extension() == ".yaml") files.try_emplace(entry.path().stem().string(), entry.path());
    // A folder that cannot be read must not take its stacks out of a comparison unseen. Where the working folder itself
    // may not be searched, it is not known whether there is one.
    std::error_code ignored;
    if (error && !is_missing(error) && (error != std::errc::permission_denied || fs::is_directory(folder, ignored)))
      throw fs::filesystem_error("", folder, error);
  }
  std::vector<fs::path> sorted;
  for (const auto& [name, file] : files) sorted.push_back(file);
  return sorted;
}

std::vector<std::string> stack_names() {
  std::vector<std::string> names;
  for (const fs::path& file : stack_files()) names.push_back(file.stem().string());
  return names;
}

fs::path find_model(const std::string& name_or_folder) {
  fs::path folder = find(name_or_folder, kModel);
  require_unwritten(folder);
  return folder;
}
fs::path find_machine(const std::string& name_or_file) { return find(name_or_file, kMachine); }
fs::path find_scenario(const std::string& name_or_file) { return find(name_or_file, kScenario); }

std::optional<fs::path> try_find_model(const std::string& name_or_folder) { return try_find(name_or_folder, kModel); }
std::vector<std::string> machine_names() { return listed(kMachine); }
std::vector<std::string> model_names() { return listed(kModel); }
std::vector<std::string> scenario_names() { return listed(kScenario); }

std::optional<fs::path> try_find_machine(const std::string& name_or_file) { return try_find(name_or_file, kMachine); }
std::optional<fs::path> try_find_scenario(const std::string& name_or_file) { return try_find(name_or_file, kScenario); }

}  // namespace dculab::study
