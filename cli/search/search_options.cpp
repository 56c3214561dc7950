#include "cli/search/search_options.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>

#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "fields/printable_text.hpp"

namespace dculab::cli {
namespace {

constexpr int kMostShards = 1 << 20;
constexpr double kLeastWithin = 1.01, kMostWithin = 1000;

// "2/8"; false for anything else.
[[nodiscard]] bool parse_shard(const std::string& text, study::SearchOptions& options) {
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

void tell_dropped_bytes(const config::StudyJournal& journal) {
  std::cerr << "dculab: " << printable(journal.path()) << ": " << journal.num_chunks() << " of "
            << journal.header().end - journal.header().begin << " chunks are whole and kept; "
            << journal.num_dropped_bytes() << " bytes behind them are dropped\n";
}

// False where there is nobody to ask.
[[nodiscard]] bool asks_on_terminal(const std::string& cost) {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1) return false;
  std::cerr << cost << ". Start it? [y/N] " << std::flush;
  std::string answer;
  return std::getline(std::cin, answer) && (answer == "y" || answer == "Y" || answer == "yes");
}

}  // namespace

void add_answer_options(CLI::App& command, study::SearchChoices& choices) {
  add_output_file(command, "--points", choices.points_file, "Write every point's figures here, as CSV");
  CLI::Option* sensitivity = command.add_flag("--sensitivity", choices.sensitivity,
                                              "Which machine figure would change the answer, and by how much");
  command
      .add_option("--within", choices.within, "With --sensitivity: largest change of a figure, as a factor each way")
      ->check(CLI::Range(kLeastWithin, kMostWithin))
      ->needs(sensitivity);
}

void add_pricing_options(CLI::App& command, study::SearchChoices& choices) {
  command.add_option("--threads", choices.pricing.threads, "Threads of a search, 0 = all cores")->check(thread_count());
  writes(command.add_option("--journal", choices.pricing.journal, "Journal of a search: --resume continues from it"))
      ->option_text("FILE");
  command.add_flag("--yes", choices.yes, "Start a search of more than 100 million points without asking");
  command.add_flag("--resume", choices.resume, "Continue from the existing journal");
  command.add_flag("--salvage", choices.salvage,
                   "Continue from a damaged journal: keep the chunks before the damage, drop the rest");
  command
      .add_option_function<std::string>(
          "--shard",
          [&choices](const std::string& text) {
            if (!parse_shard(text, choices.pricing))
              throw CLI::ValidationError("--shard", "'" + text + "' is not a part such as 2/8");
          },
          "Compute part I of N of a search, into the journal")
      ->option_text("I/N");
}

present::SearchEvents search_events(ProgressBar& bar) {
  return {.progress = bar.updates(), .on_dropped_bytes = tell_dropped_bytes, .agrees = asks_on_terminal};
}

}  // namespace dculab::cli
