#include "cli/scenario/file_options.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>

#include "study/scenario/named_files.hpp"

namespace dculab::cli {
namespace {

namespace fs = std::filesystem;

CLI::Option* names_file(CLI::Option* option, study::FileUse use, FindFile find) {
  const auto check = [option, use, find](const std::string& value) -> std::string {
    if (value.empty()) return "the name is empty; give a file";
    const std::optional<fs::path> found = find == nullptr ? value : find(value);
    return study::add_named_file({option->get_name(), found.value_or(value), use});
  };
  return option->check(CLI::Validator(check, ""));
}

// Why `file` cannot be written; empty when it can.
[[nodiscard]] std::string why_not_writable(const std::string& file) {
  std::error_code error;
  const fs::file_type type = fs::status(file, error).type();
  if (type == fs::file_type::directory) return file + " is a folder; give a file to write";
  if (type == fs::file_type::none) return file + " cannot be written (" + error.message() + ")";
  const fs::path folder = fs::absolute(file, error).parent_path();
  if (error) return file + " cannot be written (the current folder: " + error.message() + ")";
  const bool is_special = type != fs::file_type::not_found && type != fs::file_type::regular;  // /dev/stdout, a pipe
  if (::access(is_special ? file.c_str() : folder.c_str(), W_OK) == 0) return "";
  return file + " cannot be written (" + std::strerror(errno) + ")";
}

}  // namespace

CLI::Option* reads(CLI::Option* option, FindFile find) { return names_file(option, study::FileUse::read, find); }

CLI::Option* writes(CLI::Option* option) { return names_file(option, study::FileUse::written, nullptr); }

void add_output_file(CLI::App& command, const std::string& option, std::string& file, const std::string& help) {
  writes(command.add_option(option, file, help))->check(CLI::Validator(why_not_writable, ""))->option_text("FILE");
}

}  // namespace dculab::cli
