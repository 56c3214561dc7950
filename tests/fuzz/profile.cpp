// Kernels as profilers list them, and the steps that are found among them. The model has one layer, so that a small
// input holds a whole step.
#include <algorithm>
#include <string>

#include "config/profile/profile_file.hpp"
#include "config/profile/step_import.hpp"
#include "config/trace_file.hpp"
#include "core/error.hpp"
#include "tests/fuzz/targets.hpp"

namespace dculab::fuzz {
namespace {

using config::KernelRecord;
using config::Profile;
using config::Profiler;

ModelShape one_layer_model() {
  ModelShape model;
  model.name = "one layer";
  model.hidden_size = 256;
  model.kinds[0].mlp.intermediate_size = 768;
  model.layers.assign(1, 0);
  model.kinds[0].gqa().heads.num_attention_heads = model.kinds[0].gqa().heads.num_key_value_heads = 8;
  model.kinds[0].gqa().heads.head_dim = 32;
  model.vocab_size = 2048;
  model.max_position_embeddings = 1024;
  return model;
}

void check_kernels(const Profile& profile) {
  require(!profile.kernels.empty(), "a profile has kernels");
  const auto begins_later = [](const KernelRecord& a, const KernelRecord& b) { return a.begin_ns < b.begin_ns; };
  require(std::ranges::is_sorted(profile.kernels, begins_later), "kernels are in order of time");
  for (const KernelRecord& kernel : profile.kernels) {
    require(kernel.begin_ns >= 0 && kernel.end_ns >= kernel.begin_ns, "a kernel ends after it begins");
    require(!kernel.name.empty(), "a kernel has a name");
  }
}

void import_as(const Profile& profile, Phase phase, config::StepTime time) {
  config::ProfiledWork work;
  work.model = one_layer_model();
  work.phase = phase;
  work.context = 100;
  work.growth = phase == Phase::decode ? 1 : 0;
  config::ImportChoices choices;
  choices.time = time;
  choices.steps_per_row = 1;
  choices.most_other = 1;
  try {
    const config::ImportedSteps imported = config::import_steps(profile, work, choices);
    require(!imported.rows.empty(), "an import has rows");
    const double share = imported.summary.other_share();
    require(share >= 0 && share <= 1, "what serves no op is a share of the time");
    Trace trace;
    trace.header.machine = "fuzz";
    trace.steps = imported.rows;
    const std::string text = config::trace_json_lines(trace);
    require(config::trace_json_lines(read_back([&] { return config::read_trace("again.jsonl", text); })) == text,
            "an import makes a sound trace");
  } catch (const InputError&) {
  }
}

void read_as(const std::string& text, Profiler profiler) {
  const Profile profile = config::read_profile("fuzz", text, profiler);
  check_kernels(profile);
  for (const Phase phase : {Phase::decode, Phase::prefill})
    for (const auto time : {config::StepTime::span, config::StepTime::period}) import_as(profile, phase, time);
}

}  // namespace

void read_kernel_profile(std::string_view input) {
  const std::string text(input);
  for (const Profiler profiler : {Profiler::rocprof, Profiler::rocprofv3, Profiler::hipprof, Profiler::nsys}) {
    try {
      read_as(text, profiler);
    } catch (const InputError&) {
    }
  }
  read_as(text, Profiler::automatic);
}

}  // namespace dculab::fuzz
