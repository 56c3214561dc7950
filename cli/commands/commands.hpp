// The subcommands, one file each.
#pragma once

namespace CLI {
class App;
}

namespace dculab::cli {

void add_study(CLI::App& app);
void add_merge(CLI::App& app);
void add_predict(CLI::App& app);
void add_diagnose(CLI::App& app);
void add_tables(CLI::App& app);
void add_run(CLI::App& app);
void add_bench(CLI::App& app);
void add_evaluate(CLI::App& app);
void add_probe(CLI::App& app);
void add_import(CLI::App& app);
void add_quantize(CLI::App& app);
void add_replay(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_validate(CLI::App& app);
void add_regroup(CLI::App& app);
void add_show(CLI::App& app);
void add_schema(CLI::App& app);
void add_simulate(CLI::App& app);
void add_recommend(CLI::App& app);
void add_page(CLI::App& app);
void add_serve(CLI::App& app);
void add_completion(CLI::App& app);
void add_manual(CLI::App& app);
void add_list(CLI::App& app);
void add_help(CLI::App& app);

// All of them, in the groups in which --help shows them (commands.cpp).
void add_commands(CLI::App& app);

}  // namespace dculab::cli
