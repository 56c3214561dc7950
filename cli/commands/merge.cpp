// `dculab merge`: the shards of a study become its answer.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/output_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/search/search_options.hpp"
#include "present/answer/answered_search.hpp"

namespace dculab::cli {
namespace {

struct MergeChoices {
  std::vector<std::string> journals;
  study::SearchChoices search;
  present::OutputOptions output;
};

}  // namespace

void add_merge(CLI::App& app) {
  CLI::App* command = app.add_subcommand("merge", "Merge the shards of a study into one answer");
  auto choices = std::make_shared<MergeChoices>();
  reads(command->add_option("journal", choices->journals, "Journals that study --shard --journal wrote, one per shard"))
      ->required();
  add_answer_options(*command, choices->search);
  add_report_options(*command, choices->output);
  add_examples(*command,
               {"dculab study block_size --set 'objective={minimize: step_time}' --shard 1/2 --journal one.journal",
                "dculab study block_size --set 'objective={minimize: step_time}' --shard 2/2 --journal two.journal",
                "dculab merge one.journal two.journal"});
  command->callback([choices] {
    present::Report report;
    ProgressBar bar;
    present::merge_study(choices->journals, choices->search, search_events(bar), report);
    bar.clear();
    present::show(report, choices->output);
  });
}

}  // namespace dculab::cli
