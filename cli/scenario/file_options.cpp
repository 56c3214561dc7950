#include "cli/scenario/file_options.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "files/input.hpp"
#include "files/output.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/named_files.hpp"
#include "study/scenario/shown.hpp"

namespace dculab::cli {
namespace {

namespace fs = std::filesystem;

// What `find` finds by name.
[[nodiscard]] const char* kind_of_names(FindFile find) {
  if (find == study::try_find_model) return "model";
  if (find == study::try_find_machine) return "machine";
  if (find == study::try_find_scenario) return "scenario";
  return find == study::try_find_shown ? "any" : "file";
}

constexpr const char* kStream = "-";

// `-` stands for standard input or output.
void takes_stream(CLI::Option* option, std::string_view stream) {
  const auto name_stream = [stream](std::string& value) -> std::string {
    if (value == kStream) value = stream;
    return "";
  };
  option->transform(CLI::Validator(name_stream, ""));
}

CLI::Option* names_file(CLI::Option* option, study::FileUse use, FindFile find) {
  const auto check = [option, use, find](const std::string& value) -> std::string {
    if (value.empty()) return "the name is empty; give a file";
    if (value == kStream && use == study::FileUse::read)
      return "a model is a folder, which standard input is not; name it";
    if (value == kStream) return "standard output does not take what is written here; give a name";
    const std::optional<fs::path> found = find == nullptr ? value : find(value);
    return study::add_named_file({option->get_name(), found.value_or(value), use});
  };
  return option->check(CLI::Validator(check, "", kind_of_names(find)));
}

// Why `file` cannot be written; empty when it can.
[[nodiscard]] std::string why_not_writable(const std::string& file) {
  std::error_code error;
  const fs::file_type type = fs::status(file, error).type();
  if (type == fs::file_type::directory) return file + " is a folder; give a file to write";
  if (type == fs::file_type::none) return file + " cannot be written (" + error.message() + ")";
  const fs::path folder = fs::absolute(file, error).parent_path();
  if (error) return file + " cannot be written (the current folder: " + error.message() + ")";
  // /dev/stdout, wherever that goes, or a pipe
  const bool is_special =
      file == files::kStandardOutput || (type != fs::file_type::not_found && type != fs::file_type::regular);
  if (::access(is_special ? file.c_str() : folder.c_str(), W_OK) == 0) return "";
  return file + " cannot be written (" + std::strerror(errno) + ")";
}

}  // namespace

CLI::Option* reads(CLI::Option* option, FindFile find) {
  if (find != study::try_find_model) takes_stream(option, files::kStandardInput);
  return names_file(option, study::FileUse::read, find);
}

CLI::Option* writes(CLI::Option* option) { return names_file(option, study::FileUse::written, nullptr); }

void add_output_file(CLI::App& command, const std::string& option, std::string& file, const std::string& help) {
  CLI::Option* written = command.add_option(option, file, help);
  takes_stream(written, files::kStandardOutput);
  writes(written)->check(CLI::Validator(why_not_writable, ""))->option_text("FILE");
}

}  // namespace dculab::cli
