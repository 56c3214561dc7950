// Runs the built dculab as a user does: arguments in, exit code and two streams out.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dculab::cli::test {

using Json = nlohmann::json;
using Arguments = std::vector<std::string>;

// A scenario that is a search: three steps.
inline constexpr const char* kSmallSearch =
    "schema: dculab/scenario/1\n"
    "question: Which block size?\n"
    "model: llama-2-7b\n"
    "machine: z100\n"
    "workload: {phase: decode, batch: 16, context_tokens: 2000}\n"
    "sweep: {kv_cache.block_size: [16, 32, 64]}\n"
    "objective: {maximize: tokens_per_second}\n";

// Whether this build writes pages of charts (cmake/DculabReport.cmake).
inline constexpr bool kHasPages = DCULAB_HAS_PAGES;

struct Finished {
  int exit_code = -1;  // 128 + the signal's number when a signal ended it
  std::string out;
  std::string err;
};

[[nodiscard]] Finished run_dculab(const Arguments& arguments);

// What a shell does with the program, which is "$@" with its arguments: `exec "$@" >/dev/full`.
[[nodiscard]] Finished run_in_shell(const std::string& script, const Arguments& arguments);

// The JSON Schema of a document, by its `schema` or its command.
[[nodiscard]] Json schema_of(const std::string& document);

// The parsed standard output of a command that must end with exit code 0; `--format json` is added. The document must
// be as its schema says.
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

// The head and the first published point: all of them take a while.
[[nodiscard]] std::string one_published_point();

// Exit code 2, nothing on standard output, and one line on standard error that contains all of `parts`.
void check_refused(const Arguments& arguments, const std::vector<std::string>& parts);
void check_refusal(const Finished& done, const std::vector<std::string>& parts);

}  // namespace dculab::cli::test
