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

inline void add_commands(CLI::App& app) {
  add_study(app);
  add_merge(app);
  add_predict(app);
  add_simulate(app);
  add_recommend(app);
  add_diagnose(app);
  add_tables(app);
  add_run(app);
  add_serve(app);
  add_bench(app);
  add_evaluate(app);
  add_probe(app);
  add_import(app);
  add_quantize(app);
  add_replay(app);
  add_calibrate(app);
  add_validate(app);
  add_regroup(app);
  add_show(app);
  add_schema(app);
  add_page(app);
}

}  // namespace dculab::cli
