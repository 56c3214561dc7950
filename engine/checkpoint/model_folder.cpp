#include "engine/checkpoint/model_folder.hpp"

#include <unistd.h>

#include <array>
#include <fstream>
#include <system_error>

#include "core/error.hpp"

namespace dculab::engine {
namespace {

namespace fs = std::filesystem;

// What makes a Hugging Face folder complete beside config.json and the weights.
constexpr std::array kCompanionFiles{"generation_config.json",
                                     "tokenizer.json",
                                     "tokenizer_config.json",
                                     "tokenizer.model",
                                     "added_tokens.json",
                                     "special_tokens_map.json",
                                     "vocab.json",
                                     "merges.txt",
                                     "chat_template.jinja"};

fs::path without_trailing_slash(const fs::path& path) { return path.has_filename() ? path : path.parent_path(); }

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
  const fs::path temporary = folder.string() + ".part-" + std::to_string(::getpid());
  std::error_code ignored;
  try {
    fs::create_directory(temporary);
    fill(temporary);
    fs::rename(temporary, folder);  // onto an empty folder, if there is one
  } catch (const fs::filesystem_error& error) {
    fs::remove_all(temporary, ignored);
    throw InputError(folder.string(), "cannot be written (" + error.code().message() + ")");
  } catch (...) {
    fs::remove_all(temporary, ignored);
    throw;
  }
}

void copy_companion_files(const fs::path& source, const fs::path& folder) {
  for (const char* name : kCompanionFiles)
    if (fs::exists(source / name)) fs::copy_file(source / name, folder / name);
}

void write_text(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw InputError(file.string(), "cannot be written; is there room?");
}

}  // namespace dculab::engine
