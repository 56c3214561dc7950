#include "engine/checkpoint/model_folder.hpp"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <system_error>

#include "core/error.hpp"
#include "fields/json_text.hpp"
#include "files/input.hpp"
#include "files/output.hpp"
#include "model/folder/model_files.hpp"

namespace dculab::engine {
namespace {

namespace fs = std::filesystem;

fs::path without_trailing_slash(const fs::path& path) { return path.has_filename() ? path : path.parent_path(); }

bool is_inside(const fs::path& file, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
}

// The folder itself, or "models--who--what/blobs" where it is "models--who--what/snapshots/<commit>".
void require_own_file(const fs::path& source, const fs::path& file) {
  const fs::path folder = fs::canonical(source);
  std::error_code error;
  const fs::path target = fs::canonical(file, error);
  if (error) throw InputError(file.string(), "is a link that leads nowhere (" + error.message() + "); remove it");
  const fs::path repository = folder.parent_path().parent_path();
  const bool is_snapshot =
      folder.parent_path().filename() == "snapshots" && repository.filename().string().starts_with("models--");
  if (!is_inside(target, folder) && !(is_snapshot && is_inside(target, repository / "blobs")))
    throw InputError(file.string(), "is a link to " + target.string() +
                                        ", outside the model's folder (it would be copied into the new model); "
                                        "replace it with the file, if it belongs to the model");
  if (!fs::is_regular_file(target))
    throw InputError(file.string(), "is not a regular file and cannot be copied into the new model; remove it");
}

}  // namespace

void require_new_folder(const fs::path& asked) {
  const fs::path folder = without_trailing_slash(asked);
  std::error_code ignored;
  if (fs::exists(folder, ignored) && !(fs::is_directory(folder, ignored) && fs::is_empty(folder, ignored)))
    throw InputError(folder.string(), "exists already; give a new folder");
  const fs::path parent = fs::absolute(folder).lexically_normal().parent_path();
  if (!fs::is_directory(parent, ignored) || ::access(parent.c_str(), W_OK) != 0)
    throw InputError(folder.string(), "cannot be created (" + parent.string() + " is not a folder one can write to)");
}

void make_folder(const fs::path& asked, const std::function<void(const fs::path&)>& fill) {
  require_new_folder(asked);
  const fs::path folder = without_trailing_slash(asked);
  try {
    files::NewFolder made(folder.string());
    fill(made.path());
    made.keep();
  } catch (const fs::filesystem_error& error) {
    throw InputError(folder.string(), "cannot be written (" + error.code().message() + ")");
  }
}

std::vector<std::string> companion_files(const fs::path& source) {
  std::vector<std::string> names;
  for (const char* name : kCompanionFiles) {
    const fs::path file = source / name;
    std::error_code ignored;
    if (fs::symlink_status(file, ignored).type() == fs::file_type::not_found) continue;
    require_own_file(source, file);
    if (file.extension() == ".json") (void)parse_json(file.string(), 1, read_model_text(file.string()));
    names.emplace_back(name);
  }
  return names;
}

void copy_companion_files(const fs::path& source, const fs::path& folder) {
  for (const std::string& name : companion_files(source)) {
    const auto next = files::read_text_pieces(source / name, files::kLargestText);
    files::GrowingFile copy(folder / name);
    for (std::string_view piece = next(); !piece.empty(); piece = next()) copy.write(piece);
    copy.keep();
  }
}

}  // namespace dculab::engine
