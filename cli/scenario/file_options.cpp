#include "cli/scenario/file_options.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <vector>

#include "engine/checkpoint/model_folder.hpp"
#include "files/input.hpp"
#include "files/output.hpp"

namespace dculab::cli {
namespace {

namespace fs = std::filesystem;

enum class FileUse { read, written };

struct NamedFile {
  std::string option;
  fs::path path;
  FileUse use;
};

// Of this command line, in the order in which its options are read.
[[nodiscard]] std::vector<NamedFile>& named_files() {
  static std::vector<NamedFile> files;
  return files;
}

// A device or a pipe holds nothing that could be lost.
[[nodiscard]] bool is_stream(const fs::path& path) {
  std::error_code ignored;
  const fs::file_type type = fs::status(path, ignored).type();
  return type == fs::file_type::character || type == fs::file_type::fifo || type == fs::file_type::socket;
}

// By device and number where both are there, else by name.
[[nodiscard]] bool is_same(const fs::path& one, const fs::path& other) {
  std::error_code ignored, failed;
  if (fs::equivalent(one, other, ignored)) return true;
  const auto name_of = [&failed](const fs::path& path) {
    return fs::weakly_canonical(fs::absolute(path, failed), failed);
  };
  return name_of(one) == name_of(other) && !failed;
}

// A model folder stands for the files in it that models are made of, so that results may be written beside them.
[[nodiscard]] bool belongs_to(const fs::path& file, const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (engine::is_model_file(entry.path().filename()) && is_same(file, entry.path())) return true;
  return engine::is_model_file(file.filename()) &&
         is_same(file, folder / file.filename());  // one that is not there yet
}

// What is written is the file behind the links, also where that is not there yet.
[[nodiscard]] fs::path target_of(const NamedFile& file) {
  if (file.use == FileUse::read) return file.path;
  try {
    return files::behind_links(file.path);
  } catch (const fs::filesystem_error&) {  // refused where it is to be written
    return file.path;
  }
}

// What is wrong with one more file; "" when nothing is.
[[nodiscard]] std::string add_named_file(const NamedFile& named) {
  if (is_stream(named.path)) return "";
  const NamedFile file{named.option, target_of(named), named.use};
  for (const NamedFile& other : named_files()) {
    if (file.use == FileUse::read && other.use == FileUse::read) continue;
    if (is_same(file.path, other.path) || (other.use == FileUse::read && belongs_to(file.path, other.path)) ||
        (file.use == FileUse::read && belongs_to(other.path, file.path)))
      return named.path.string() + " is " + (file.use == FileUse::read ? "read here" : "written here") + " and " +
             (other.use == FileUse::read ? "read" : "written") + " by " + other.option + "; name another file";
  }
  named_files().push_back(file);
  if (file.use == FileUse::written) files::reserve_for_output(file.path, file.option);
  return "";
}

CLI::Option* names_file(CLI::Option* option, FileUse use, FindFile find) {
  const auto check = [option, use, find](const std::string& value) -> std::string {
    if (value.empty()) return "the name is empty; give a file";
    const std::optional<fs::path> found = find == nullptr ? value : find(value);
    return add_named_file({option->get_name(), found.value_or(value), use});
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

CLI::Option* reads(CLI::Option* option, FindFile find) { return names_file(option, FileUse::read, find); }

CLI::Option* writes(CLI::Option* option) { return names_file(option, FileUse::written, nullptr); }

void require_unwritten(const fs::path& model_folder) {
  for (const NamedFile& file : named_files())
    if (file.use == FileUse::written && belongs_to(file.path, model_folder))
      throw files::ReservedFileError(file.path, "is of the model " + model_folder.string() + " and written by " +
                                                    file.option + "; name another file to write");
}

void add_output_file(CLI::App& command, const std::string& option, std::string& file, const std::string& help) {
  writes(command.add_option(option, file, help))->check(CLI::Validator(why_not_writable, ""))->option_text("FILE");
}

}  // namespace dculab::cli
