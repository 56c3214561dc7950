#include "cli/search/search_options.hpp"

#include <CLI/CLI.hpp>
#include <charconv>

#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"

namespace dculab::cli {
namespace {

constexpr int kMostShards = 1 << 20;
constexpr double kLeastWithin = 1.01, kMostWithin = 1000;

// "2/8"; false for anything else.
[[nodiscard]] bool parse_shard(const std::string& text, SearchOptions& options) {
  const char* end = text.data() + text.size();
  int shard = 0, shards = 0;
  const auto [slash, first_error] = std::from_chars(text.data(), end, shard);
  if (first_error != std::errc() || slash == end || *slash != '/') return false;
  const auto [rest, second_error] = std::from_chars(slash + 1, end, shards);
  if (second_error != std::errc() || rest != end || shard < 1 || shard > shards || shards > kMostShards) return false;
  options.shard = shard;
  options.shards = shards;
  return true;
}

}  // namespace

void add_answer_options(CLI::App& command, SearchOptions& options) {
  add_output_file(command, "--points", options.points_file, "Write every point's figures here, as CSV");
  CLI::Option* sensitivity = command.add_flag("--sensitivity", options.sensitivity,
                                              "Which machine figure would change the answer, and by how much");
  command
      .add_option("--within", options.within, "With --sensitivity: largest change of a figure, as a factor each way")
      ->check(CLI::Range(kLeastWithin, kMostWithin))
      ->needs(sensitivity);
}

void add_pricing_options(CLI::App& command, SearchOptions& options) {
  command.add_option("--threads", options.threads, "Of a search, 0 = all cores")->check(thread_count());
  writes(
      command.add_option("--journal", options.journal, "Keep finished points of a search here, to go on when stopped"))
      ->option_text("FILE");
  command.add_flag("--resume", options.resume, "Go on with the journal that is there");
  command.add_flag("--salvage", options.salvage,
                   "Go on with a damaged journal: keep the chunks before the damage, drop what is behind it");
  command
      .add_option_function<std::string>(
          "--shard",
          [&options](const std::string& text) {
            if (!parse_shard(text, options))
              throw CLI::ValidationError("--shard", "'" + text + "' is not a part such as 2/8");
          },
          "Part I of N of a search, into the journal")
      ->option_text("I/N");
}

std::string files_option(const SearchOptions& options) {
  if (!options.journal.empty()) return "--journal";
  if (options.resume) return "--resume";
  if (options.salvage) return "--salvage";
  if (options.shards > 1) return "--shard";
  return options.points_file.empty() ? "" : "--points";
}

std::string search_option(const SearchOptions& options) {
  const std::string option = files_option(options);
  return option.empty() && options.threads != 0 ? "--threads" : option;
}

}  // namespace dculab::cli
