#include "cli/commands/commands.hpp"

#include <CLI/CLI.hpp>
#include <initializer_list>

namespace dculab::cli {
namespace {

void add_group(CLI::App& app, const char* title, std::initializer_list<void (*)(CLI::App&)> commands) {
  for (const auto add : commands) {
    add(app);
    app.get_subcommands([](const CLI::App*) { return true; }).back()->group(title);
  }
}

}  // namespace

void add_commands(CLI::App& app) {
  add_group(app, "Predict and choose",
            {add_recommend, add_predict, add_simulate, add_study, add_merge, add_diagnose, add_tables, add_page});
  add_group(app, "Look up", {add_list, add_show, add_schema, add_help});
  add_group(app, "Run models on this machine",
            {add_run, add_serve, add_bench, add_evaluate, add_quantize, add_regroup});
  add_group(app, "Measure and compare", {add_probe, add_import, add_replay, add_calibrate, add_validate});
  add_group(app, "Install", {add_completion, add_manual});
}

}  // namespace dculab::cli
