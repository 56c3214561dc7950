#include "config/profile/step_import.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <set>

#include "config/profile/kernel_map.hpp"
#include "config/profile/step_search.hpp"
#include "core/error.hpp"
#include "model/plan_step.hpp"
#include "sim/calibration/errors.hpp"

namespace dculab::config {
namespace {

constexpr std::size_t kNamesInMessage = 3;

using Kernels = std::vector<KernelRecord>;

// One step that is imported: what its row is the median of.
struct Sample {
  std::size_t step = 0;  // among those found
  double seconds = 0;
  std::vector<double> op_seconds;  // [plan.ops.size()]
};

[[nodiscard]] Batch batch_at(const ProfiledWork& work, int context) {
  Batch batch = uniform_batch(work.phase, work.batch, context);
  if (work.phase == Phase::prefill && work.new_tokens > 0)
    for (SequenceSlice& slice : batch.sequences) {
      slice.num_new_tokens = work.new_tokens;
      slice.num_computed_tokens = context - work.new_tokens;
    }
  return batch;
}

[[nodiscard]] std::string tenths_of_percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

[[nodiscard]] std::string shortened(const std::string& kernel) {
  constexpr std::size_t kLongest = 60;
  return kernel.size() <= kLongest ? kernel : kernel.substr(0, kLongest - 3) + "...";
}

[[nodiscard]] std::string step_count(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " whole step" : " whole steps");
}

using KernelsByName = std::map<std::string, OtherKernel>;

void add_kernel(const KernelRecord& kernel, KernelsByName& by_name) {
  OtherKernel& other = by_name[kernel.name];
  other.name = kernel.name;
  ++other.count;
  other.time += kernel.duration();
}

[[nodiscard]] std::vector<OtherKernel> longest_first(const KernelsByName& by_name) {
  std::vector<OtherKernel> kernels;
  for (const auto& [kernel, other] : by_name) kernels.push_back(other);
  std::ranges::stable_sort(kernels, std::greater(), &OtherKernel::time);
  return kernels;
}

// "a_kernel (72, 3.5 %), ...": how many there are, and their share of `total`.
[[nodiscard]] std::string first_names(const std::vector<OtherKernel>& kernels, Seconds total) {
  std::string names;
  for (std::size_t index = 0; index < std::min(kNamesInMessage, kernels.size()); ++index)
    names += (names.empty() ? "" : ", ") + shortened(kernels[index].name) + " (" +
             std::to_string(kernels[index].count) + ", " + tenths_of_percent(kernels[index].time / total) + ")";
  return names;
}

[[noreturn]] void refuse_without_steps(const Profile& profile, const ProfiledWork& work, const StepPlan& plan,
                                       const std::vector<NamedKernels>& named) {
  std::map<std::string_view, int> found;
  KernelsByName unknown;
  Seconds total;
  for (const KernelRecord& kernel : profile.kernels) {
    const KernelRole role = role_of(kernel.name, named);
    ++found[name(role)];
    total += kernel.duration();
    if (role == KernelRole::unknown) add_kernel(kernel, unknown);
  }
  std::string roles;
  for (const auto& [role, count] : found)
    roles.append(roles.empty() ? "" : ", ").append(role).append(" ").append(std::to_string(count));
  throw InputError(profile.file,
                   "no whole step of " + work.model.name + " (" + std::to_string(work.model.num_layers()) +
                       " layers, " + std::to_string(plan.ops.size()) + " ops) among " +
                       std::to_string(profile.kernels.size()) + " kernels (" + roles +
                       "); give the profiled --model and --phase, or record more steps. " +
                       (unknown.empty() ? ""
                                        : "Unknown are, by their time: " + first_names(longest_first(unknown), total) +
                                              "; if one serves an op, --kernel-name PART=OP says so. ") +
                       "Which names are known: dculab import --list-kernels");
}

// The steps that the user wants, all of whose times can be read off.
struct WantedSteps {
  std::vector<FoundStep> found;
  std::size_t first = 0, end = 0;

  [[nodiscard]] bool has_next(std::size_t step) const {
    return step + 1 < found.size() && found[step + 1].follows_previous;
  }
};

[[nodiscard]] WantedSteps choose_steps(const Profile& profile, std::vector<FoundStep> found, const ProfiledWork& work,
                                       const ImportChoices& choices) {
  WantedSteps wanted{std::move(found), 0, 0};
  const std::size_t count = wanted.found.size();
  wanted.first = static_cast<std::size_t>(choices.skip_steps);
  if (wanted.first >= count)
    throw InputError("--skip-steps " + std::to_string(choices.skip_steps) + ": " + profile.file + " holds " +
                     step_count(count) + "; skip fewer");
  wanted.end = choices.steps == 0 ? count : std::min(count, wanted.first + static_cast<std::size_t>(choices.steps));
  if (work.growth == 0) return wanted;
  for (std::size_t step = wanted.first + 1; step < wanted.end; ++step)
    if (!wanted.found[step].follows_previous)
      throw InputError(profile.file, profile.kernels[wanted.found[step].first].line,
                       "another kind of step stands between whole steps " + std::to_string(step) + " and " +
                           std::to_string(step + 1) +
                           ", so the context behind it is not known; choose a run of steps with --skip-steps and "
                           "--steps, or say --growth 0");
  return wanted;
}

[[nodiscard]] Seconds time_of(const Kernels& kernels, const std::vector<std::size_t>& indices) {
  Seconds total;
  for (const std::size_t index : indices) total += kernels[index].duration();
  return total;
}

[[nodiscard]] Seconds duration_between(std::int64_t begin_ns, std::int64_t end_ns) {
  return static_cast<double>(end_ns - begin_ns) * kNanosecond;
}

[[nodiscard]] Seconds step_time(const Kernels& kernels, const WantedSteps& steps, std::size_t step, StepTime time) {
  const FoundStep& found = steps.found[step];
  const std::int64_t begin = kernels[found.first].begin_ns;
  if (time == StepTime::period) return duration_between(begin, kernels[steps.found[step + 1].first].begin_ns);
  std::int64_t end = begin;
  for (std::size_t index = found.first; index <= found.last; ++index) end = std::max(end, kernels[index].end_ns);
  return duration_between(begin, end);
}

// Behind the last kernel that counts as the step's.
[[nodiscard]] std::size_t end_of(const WantedSteps& steps, std::size_t step, StepTime time) {
  return time == StepTime::period ? steps.found[step + 1].first : steps.found[step].last + 1;
}

class Accounts {
 public:
  Accounts(const Profile& profile, const StepPlan& plan, const std::vector<NamedKernels>& named)
      : kernels_(profile.kernels), named_(named) {
    summary_.kernels_per_step.resize(plan.ops.size());
  }

  void add(const FoundStep& step, std::size_t end) {
    std::set<std::size_t> of_ops;
    for (std::size_t op = 0; op < step.kernels.size(); ++op) {
      of_ops.insert(step.kernels[op].begin(), step.kernels[op].end());
      summary_.kernels_per_step[op] += static_cast<double>(step.kernels[op].size());
      summary_.op_time += time_of(kernels_, step.kernels[op]);
    }
    summary_.op_kernels += static_cast<int>(of_ops.size());
    ++summary_.steps_imported;
    for (std::size_t index = step.first; index < end; ++index) {
      if (of_ops.contains(index)) {
        op_names_.insert(kernels_[index].name);
        continue;
      }
      add_kernel(kernels_[index], others_);
    }
  }

  [[nodiscard]] ImportSummary close(std::size_t steps_found) {
    summary_.others = longest_first(others_);
    for (OtherKernel& other : summary_.others) {
      other.role = name(role_of(other.name, named_));
      summary_.other_kernels += other.count;
      summary_.other_time += other.time;
    }
    summary_.phase_is_told = std::ranges::none_of(
        op_names_, [this](std::string_view kernel) { return role_of(kernel, named_) == KernelRole::any_attention; });
    for (double& count : summary_.kernels_per_step) count /= summary_.steps_imported;
    for (const KernelRecord& kernel : kernels_) summary_.outside_time += kernel.duration();
    summary_.outside_time -= summary_.op_time + summary_.other_time;
    summary_.outside_kernels = static_cast<int>(kernels_.size()) - summary_.op_kernels - summary_.other_kernels;
    summary_.steps_found = static_cast<int>(steps_found);
    return std::move(summary_);
  }

 private:
  const Kernels& kernels_;
  const std::vector<NamedKernels>& named_;
  ImportSummary summary_;
  std::set<std::string_view> op_names_;
  KernelsByName others_;
};

void refuse_too_much_other(const Profile& profile, const ImportSummary& summary, double most) {
  if (summary.other_share() <= most) return;
  throw InputError(profile.file,
                   std::to_string(summary.other_kernels) + " kernels that serve no op take " +
                       tenths_of_percent(summary.other_share()) + " of the steps' kernel time, more than " +
                       tenths_of_percent(most) +
                       " (the longest: " + first_names(summary.others, summary.op_time + summary.other_time) +
                       "); compare the names with dculab import --list-kernels, give one an op with "
                       "--kernel-name PART=OP, or allow more with --max-other");
}

[[nodiscard]] std::string id_of(const ProfiledWork& work, int context) {
  return std::string(work.phase == Phase::decode ? "decode" : "prefill") +
         " kv_heads=" + std::to_string(work.model.heads().num_key_value_heads) +
         " block=" + std::to_string(work.options.block_size) + " kv=" + std::string(name(work.options.kv_cache_dtype)) +
         " context=" + std::to_string(context) + " batch=" + std::to_string(work.batch);
}

[[nodiscard]] TraceStep make_row(const ProfiledWork& work, const StepPlan& plan, const std::vector<Sample>& samples,
                                 int context) {
  if (context > work.model.max_position_embeddings)
    throw InputError(
        "--context " + std::to_string(work.context) + ": grows to " + std::to_string(context) +
        " tokens, more than max_position_embeddings = " + std::to_string(work.model.max_position_embeddings) + " of " +
        work.model.name + "; give the context of the first imported step, or --growth 0");
  std::vector<double> seconds;
  for (const Sample& sample : samples) seconds.push_back(sample.seconds);
  TraceStep row;
  row.id = id_of(work, context);
  row.model = work.model;
  row.options = work.options;
  row.batch = batch_at(work, context);
  row.duration = Seconds(sim::quantile(seconds, 0.5));
  row.spread = Seconds((sim::quantile(seconds, 0.75) - sim::quantile(seconds, 0.25)) / 2);
  row.repeats = static_cast<int>(samples.size());
  for (std::size_t op = 0; op < plan.ops.size(); ++op) {
    std::vector<double> times;
    for (const Sample& sample : samples) times.push_back(sample.op_seconds[op]);
    row.op_names.emplace_back(plan.ops[op].name);
    row.op_durations.emplace_back(sim::quantile(times, 0.5));
  }
  return row;
}

[[nodiscard]] Sample measure(const Kernels& kernels, const WantedSteps& steps, std::size_t step, StepTime time) {
  Sample sample;
  sample.step = step;
  sample.seconds = step_time(kernels, steps, step, time).value();
  for (const std::vector<std::size_t>& indices : steps.found[step].kernels)
    sample.op_seconds.push_back(time_of(kernels, indices).value());
  return sample;
}

}  // namespace

std::string_view name(StepTime time) { return time == StepTime::period ? "period" : "span"; }

ImportedSteps import_steps(const Profile& profile, const ProfiledWork& work, const ImportChoices& choices) {
  const StepPlan plan = plan_step(work.model, work.options, batch_at(work, work.context));
  std::vector<FoundStep> found = find_steps(profile.kernels, plan, work.model.layers, choices.named);
  if (found.empty()) refuse_without_steps(profile, work, plan, choices.named);
  const WantedSteps steps = choose_steps(profile, std::move(found), work, choices);
  const std::size_t per_row =
      choices.steps_per_row == 0 ? steps.end - steps.first : static_cast<std::size_t>(choices.steps_per_row);
  ImportedSteps imported;
  Accounts accounts(profile, plan, choices.named);
  for (std::size_t begin = steps.first; begin < steps.end; begin += per_row) {
    const std::size_t end = std::min(begin + per_row, steps.end);
    std::vector<Sample> samples;
    for (std::size_t step = begin; step < end; ++step) {
      if (choices.time == StepTime::period && !steps.has_next(step)) continue;
      samples.push_back(measure(profile.kernels, steps, step, choices.time));
      accounts.add(steps.found[step], end_of(steps, step, choices.time));
    }
    if (samples.empty()) continue;
    const int middle = static_cast<int>(samples[(samples.size() - 1) / 2].step - steps.first);
    imported.rows.push_back(make_row(work, plan, samples, work.context + work.growth * middle));
    if (imported.rows.back().duration <= Seconds(0))
      throw InputError(profile.file, "the steps' kernels take no time; record again");
  }
  if (imported.rows.empty())
    throw InputError(profile.file, step_count(steps.found.size()) +
                                       ", none with another right behind it, so no period can be read off; record "
                                       "more steps, or say --step-time span");
  imported.summary = accounts.close(steps.found.size());
  refuse_too_much_other(profile, imported.summary, choices.most_other);
  return imported;
}

}  // namespace dculab::config
