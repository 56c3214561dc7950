// The readers of files from outside, each on any bytes: for libFuzzer, and for the replay of what it found.
//
// Only InputError may leave a reader. What a reader accepts must hold together; where there is a writer, it must read
// back as the same once it is written.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace dculab::fuzz {

void read_accuracy_csv(std::string_view input);
void read_archive(std::string_view input);
void read_benchmark_results(std::string_view input);
void read_chat_template(std::string_view input);
void read_completion_request(std::string_view input);
void read_conversations_json(std::string_view input);
void read_gguf_model(std::string_view input);
void read_journal(std::string_view input);
void read_points_csv(std::string_view input);
void read_kernel_profile(std::string_view input);
void read_quantized_model(std::string_view input);
void read_question_lines(std::string_view input);
void read_requests_csv(std::string_view input);
void read_safetensors_and_config(std::string_view input);
void read_serving_runs_csv(std::string_view input);
void read_shard_index(std::string_view input);
void read_any_tokenizer(std::string_view input);
void read_trace_lines(std::string_view input);
void read_machine_or_scenario(std::string_view input);

struct Target {
  std::string_view name;  // of its corpus and of its dictionary too
  void (*read)(std::string_view input);
};

[[nodiscard]] std::span<const Target> targets();
// Null where there is none of this name.
[[nodiscard]] const Target* find_target(std::string_view name);

enum class Verdict { accepted, refused };

[[nodiscard]] Verdict run(const Target& target, std::string_view input);

// Ends the program where it does not hold.
void require(bool holds, const char* promise);

// What `read` returns, which reads what one of the program's writers wrote: it may not refuse that.
template <class Read>
auto read_back(const Read& read) {
  try {
    return read();
  } catch (const InputError& error) {
    require(false, error.what());
    throw;
  }
}

// For readers that take a path. Lies in TMPDIR, and is removed with the object.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  // Replaces the file of this name, and returns its path.
  std::string write(const std::string& name, std::string_view contents) const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A cell of CSV in quotes, so that it may hold anything but nothing; an empty one stands for an absent figure.
[[nodiscard]] std::string csv_cell(std::string_view text);
[[nodiscard]] std::string csv_cell(double figure);
// A text in JSON, in quotes.
[[nodiscard]] std::string json_string(std::string_view text);

}  // namespace dculab::fuzz
