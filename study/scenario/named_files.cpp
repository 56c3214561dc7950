#include "study/scenario/named_files.hpp"

#include <map>
#include <system_error>
#include <vector>

#include "files/input.hpp"
#include "files/output.hpp"
#include "model/folder/model_files.hpp"

namespace dculab::study {
namespace {

namespace fs = std::filesystem;

// In the order in which they were named.
[[nodiscard]] std::vector<NamedFile>& named_files() {
  static std::vector<NamedFile> files;
  return files;
}

// Options whose file is standard input or output.
[[nodiscard]] std::map<std::string, std::string>& options_of_streams() {
  static std::map<std::string, std::string> options;
  return options;
}

// Why a stream cannot be this option's file, too; "" where it can.
[[nodiscard]] std::string add_stream(const NamedFile& named) {
  const bool is_standard = named.path == files::kStandardInput || named.path == files::kStandardOutput;
  if (!is_standard) return "";
  const auto [other, is_new] = options_of_streams().emplace(named.path.string(), named.option);
  if (is_new) return "";
  return "standard " + std::string(named.use == FileUse::read ? "input is read" : "output is written") + " by " +
         (other->second == named.option ? "it twice" : other->second + " too") + "; name a file";
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
    if (is_model_file(entry.path().filename()) && is_same(file, entry.path())) return true;
  return is_model_file(file.filename()) && is_same(file, folder / file.filename());  // one that is not there yet
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

}  // namespace

std::string add_named_file(const NamedFile& named) {
  if (std::string why = add_stream(named); !why.empty()) return why;
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

std::string option_to_standard_output() {
  const auto found = options_of_streams().find(std::string(files::kStandardOutput));
  return found == options_of_streams().end() ? "" : found->second;
}

void require_unwritten(const fs::path& model_folder) {
  for (const NamedFile& file : named_files())
    if (file.use == FileUse::written && belongs_to(file.path, model_folder))
      throw files::ReservedFileError(file.path, "is of the model " + model_folder.string() + " and written by " +
                                                    file.option + "; name another file to write");
}

}  // namespace dculab::study
