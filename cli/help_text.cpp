#include "cli/help_text.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <set>

namespace dculab::cli {
namespace {

constexpr const char* kBeginning =
    "\n\n"
    "Start with\n"
    "  dculab list\n"
    "  dculab predict --model llama-3-8b --machine k100-ai --stack vllm\n"
    "  dculab recommend --model qwen3-32b --machine k100-ai --stack vllm --devices 8 --requests-per-second 5\n";
constexpr const char* kEnd =
    "\n`dculab COMMAND --help` shows the options of a command with their defaults, and an example.\n";

class HelpText final : public CLI::Formatter {
 public:
  // "INT [16]", "FILE", "TEXT ... REQUIRED"
  std::string make_option_opts(const CLI::Option* option) const override {
    const bool has_value = option->get_type_size() != 0, has_text = !option->get_option_text().empty();
    std::string text = has_text ? " " + option->get_option_text() : has_value ? " " + type_of(*option) : "";
    if (const std::string standard = has_value ? standard_of(*option) : ""; !standard.empty()) text += " " + standard;
    if (has_text) return text;
    return text + others(" Needs:", option->get_needs()) + others(" Excludes:", option->get_excludes());
  }

 private:
  [[nodiscard]] std::string type_of(const CLI::Option& option) const {
    std::string text = get_label(option.get_type_name());
    if (option.get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
    return text + (option.get_required() ? " REQUIRED" : "");
  }

  // The default, as "[16]". Of numbers 0 often stands for "not given": then the help says nothing of it.
  [[nodiscard]] static std::string standard_of(const CLI::Option& option) {
    const std::string standard = option.get_default_str();
    const bool is_said = option.get_option_text().find('[') != std::string::npos;
    const bool is_none = is_said || standard.empty() || standard == "[]" || standard == "{}";
    if (is_none || (standard == "0" && option.get_description().find("0 ") == std::string::npos)) return "";
    return standard.starts_with('[') ? standard : "[" + standard + "]";
  }

  [[nodiscard]] static std::string others(const char* title, const std::set<CLI::Option*>& options) {
    std::string text;
    for (const CLI::Option* option : options) text += (text.empty() ? title : "") + (" " + option->get_name());
    return text;
  }
};

}  // namespace

void set_help_text(CLI::App& app) {
  app.formatter(std::make_shared<HelpText>());
  app.option_defaults()->always_capture_default();
}

void add_examples(CLI::App& command, std::initializer_list<const char*> lines) {
  std::string text = lines.size() > 1 ? "Examples:" : "Example:";
  for (const char* line : lines) text.append("\n  ").append(line);
  command.footer(text);
}

std::string overview(const CLI::App& app) {
  const CLI::Formatter formatter;
  return std::string(kPurpose) + kBeginning + formatter.make_subcommands(&app, CLI::AppFormatMode::Normal) + kEnd;
}

}  // namespace dculab::cli
