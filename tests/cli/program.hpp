// Runs the built dculab as a user does: arguments in, exit code and two streams out.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dculab::cli::test {

using Json = nlohmann::json;
using Arguments = std::vector<std::string>;

struct Finished {
  int exit_code = -1;  // 128 + the signal's number when a signal ended it
  std::string out;
  std::string err;
};

[[nodiscard]] Finished run_dculab(const Arguments& arguments);

// The parsed standard output of a command that must end with exit code 0; `--format json` is added.
[[nodiscard]] Json run_for_json(Arguments arguments);

// An empty folder for one test, removed at its end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const { return (root_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const;  // returns the path
  [[nodiscard]] std::vector<std::string> entries() const;                     // names, sorted

 private:
  std::filesystem::path root_;
};

[[nodiscard]] std::string read(const std::string& path);

// Exit code 2, nothing on standard output, and one line on standard error that contains all of `parts`.
void check_refused(const Arguments& arguments, const std::vector<std::string>& parts);

}  // namespace dculab::cli::test
