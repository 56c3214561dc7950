// libFuzzer calls the two functions at the end. The environment variable FUZZ names the target:
//   FUZZ=journal build/fuzz/tests/fuzz/fuzz tests/fuzz/corpus/journal
#include "tests/fuzz/targets.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "fields/json_text.hpp"

namespace dculab::fuzz {
namespace {

constexpr std::array kTargets{
    Target{"accuracy", read_accuracy_csv},
    Target{"archive", read_archive},
    Target{"benchmarks", read_benchmark_results},
    Target{"chat_template", read_chat_template},
    Target{"completions", read_completion_request},
    Target{"conversations", read_conversations_json},
    Target{"gguf", read_gguf_model},
    Target{"journal", read_journal},
    Target{"points", read_points_csv},
    Target{"profile", read_kernel_profile},
    Target{"quantized", read_quantized_model},
    Target{"questions", read_question_lines},
    Target{"requests", read_requests_csv},
    Target{"safetensors", read_safetensors_and_config},
    Target{"serving_runs", read_serving_runs_csv},
    Target{"shard_index", read_shard_index},
    Target{"tokenizer", read_any_tokenizer},
    Target{"trace", read_trace_lines},
    Target{"yaml", read_machine_or_scenario},
};

[[noreturn]] void end(const std::string& why) {
  std::fprintf(stderr, "fuzz: %s\n", why.c_str());
  std::abort();
}

}  // namespace

std::span<const Target> targets() { return kTargets; }

const Target* find_target(std::string_view name) {
  const auto found = std::ranges::find(kTargets, name, &Target::name);
  return found == kTargets.end() ? nullptr : &*found;
}

Verdict run(const Target& target, std::string_view input) {
  try {
    target.read(input);
    return Verdict::accepted;
  } catch (const InputError& error) {
    require(*error.what() != '\0', "a refusal says why");
    return Verdict::refused;
  }
}

void require(bool holds, const char* promise) {
  if (!holds) end(std::string("broken: ") + promise);
}

ScratchFolder::ScratchFolder() : path_((std::filesystem::temp_directory_path() / "dculab-fuzz-XXXXXX").string()) {
  if (::mkdtemp(path_.data()) == nullptr) end(path_ + " cannot be made");
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string ScratchFolder::write(const std::string& name, std::string_view contents) const {
  std::string file = path_ + "/" + name;
  if (!(std::ofstream(file, std::ios::binary) << contents).flush()) end(file + " cannot be written");
  return file;
}

std::string csv_cell(std::string_view text) {
  std::string cell = "\"";
  for (const char letter : text) cell.append(letter == '"' ? 2 : 1, letter);
  return cell + "\"";
}

std::string csv_cell(double figure) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), figure).ptr};
}

std::string json_string(std::string_view text) {
  Node node;
  node.kind = NodeKind::scalar;
  node.type = ScalarType::text;
  node.text = text;
  return json_text(node);
}

}  // namespace dculab::fuzz

namespace {

const dculab::fuzz::Target* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*count*/, char*** /*arguments*/) {
  const char* name = std::getenv("FUZZ");
  chosen = dculab::fuzz::find_target(name == nullptr ? "" : name);
  if (chosen != nullptr) return 0;
  std::fprintf(stderr, "fuzz: set FUZZ to one of");
  for (const auto& target : dculab::fuzz::targets()) std::fprintf(stderr, " %s", std::string(target.name).c_str());
  std::fprintf(stderr, "\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static_cast<void>(dculab::fuzz::run(*chosen, {reinterpret_cast<const char*>(data), size}));
  return 0;
}
