// `dculab probe`: measures this machine and writes its YAML.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/output_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/step_choices.hpp"
#include "config/machine_file.hpp"
#include "core/error.hpp"
#include "engine/probe/probe.hpp"
#include "files/output.hpp"
#include "present/measure/probe_report.hpp"
#include "present/output/show.hpp"
#include "study/measure/host_machine.hpp"
#include "study/measure/probed_gpu.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

struct ProbeChoices {
  bool quick = false;
  int threads = 0;
  std::string device = "cpu";
  std::string like;  // GPUs only
  std::string machine_file;
  present::OutputOptions output;
};

void run_cpu_probe(const ProbeChoices& choices) {
  ProgressBar bar;
  const engine::HostMeasurements host = engine::probe_host(
      {.mode = choices.quick ? engine::ProbeMode::quick : engine::ProbeMode::full,
       .threads = choices.threads,
       .progress = [&bar](std::string_view label, double share) { bar.update(std::string(label), share); }});
  bar.clear();
  const sim::Machine machine = study::to_machine(host);
  if (!choices.machine_file.empty()) files::write_file_atomically(choices.machine_file, config::machine_yaml(machine));
  present::show(present::host_probe_report(host, machine), choices.output);
}

void run_gpu_probe(const ProbeChoices& choices, const engine::DeviceChoice& device) {
  const study::ProbedGpu probed =
      study::probe_gpu({.device = device, .wants_machine = !choices.machine_file.empty(), .like = choices.like});
  if (probed.machine) files::write_file_atomically(choices.machine_file, config::machine_yaml(*probed.machine));
  present::show(present::gpu_probe_report(probed.measurements, probed.reality), choices.output);
}

void run_probe(const ProbeChoices& choices) {
  const engine::DeviceChoice device = parse_option("--device", choices.device, engine::parse_device);
  if (device.kind == engine::DeviceKind::cpu) {
    if (!choices.like.empty()) throw InputError("--like", "a CPU is measured whole; --like is for GPUs");
    return run_cpu_probe(choices);
  }
  if (choices.quick || choices.threads != 0) throw InputError("--quick and --threads are for CPUs; leave them out");
  run_gpu_probe(choices, device);
}

}  // namespace

void add_probe(CLI::App& app) {
  CLI::App* command = app.add_subcommand("probe", "Measure this machine and write its YAML");
  auto choices = std::make_shared<ProbeChoices>();
  command->add_flag("--quick", choices->quick, "About 20 seconds instead of a minute");
  command->add_option("--threads", choices->threads, "Most threads to measure with, 0 = all CPUs")
      ->check(thread_count());
  command->add_option(
      "--device", choices->device,
      "cpu; hip:N or cuda:N for a GPU; host-gpu runs the GPU probe on the host, where its times mean nothing");
  reads(command->add_option("--like", choices->like,
                            "GPU: shipped machine from which the written file takes caches, latencies and registers; "
                            "default: the one nearest by name, compute units and memory"),
        study::try_find_machine);
  add_output_file(*command, "--machine-file", choices->machine_file, "Write the machine's YAML here");
  add_output_options(*command, choices->output);
  add_examples(*command, {"dculab probe --quick --machine-file host.yaml"});
  command->callback([choices] { run_probe(*choices); });
}

}  // namespace dculab::cli
