#include "cli/scenario/evaluation_choices.hpp"

#include <CLI/CLI.hpp>

#include "cli/scenario/checks.hpp"
#include "cli/scenario/retention_choices.hpp"
#include "core/error.hpp"
#include "core/kv/figures.hpp"

namespace dculab::cli {

void refuse_idle_options(const CLI::App& command, const EvaluateChoices& choices) {
  const bool shares = choices.retention_sizes.window_tokens == 0;  // a budget sets what windows keep: share_budget
  refuse_idle_figures(command, choices.retentions, [shares](const KvPolicy& policy, const KvFigure& figure) {
    return counts(policy, figure) || (shares && policy.has_window && figure.counts == &KvPolicy::has_budget);
  });
  const bool has_text = !choices.tasks.text_file.empty();
  refuse_idle(command, "--window", !has_text, "without --text");
  refuse_idle(command, "--max-num-seqs", !has_text || !choices.stream, "without --text and --stream");
  refuse_idle(command, "--decode-batch", choices.tasks.decode.steps == 0, "with --decode-steps 0");
}

void refuse_unjudgeable(const EvaluateChoices& choices, const std::vector<present::EvaluationRow>& rows) {
  const present::EvaluationTasks& tasks = choices.tasks;
  if (tasks.text_file.empty() && tasks.question_files.empty())
    throw InputError("there is nothing to judge: give --text FILE, --choices FILE, or both");
  const bool compares = tasks.num_prompts != present::EvaluationTasks().num_prompts ||
                        tasks.max_tokens != present::EvaluationTasks().max_tokens;
  if (compares && !choices.speculation.asked())
    throw InputError("--num-prompts, --max-tokens", "are of the comparison with and without drafts; add what drafts");
  if (choices.speculation.asked() &&
      speculative_config(choices.speculation).rejection_sample_method == RejectionSampleMethod::synthetic)
    throw InputError("--rejection-sample-method", "synthetic gives other texts; use it with `dculab bench --workload`");
  if (!tasks.reference.empty() && tasks.text_file.empty())
    throw InputError("--reference: predictions are compared over a text; give --text FILE");
  for (const present::EvaluationRow& row : rows) {
    if (!differs_in_decodes(row.retention.policy)) continue;
    const KvPolicy& policy = kv_policy(row.retention.policy);
    const std::string option = "--kv-retention " + policy_text(row.retention.policy);
    if (tasks.mode != engine::ScoringMode::streamed)
      throw InputError(option +
                       (policy.has_budget ? ": decodes that load a part of the cache are judged"
                                          : ": a cache that drops tokens is judged") +
                       " token by token; add --stream");
    if (policy.has_budget && row.retention.kv_budget <= 0) throw InputError(option + ": give --kv-budget");
    if (policy.has_window && row.retention.window_tokens < 1 && row.retention.kv_budget <= 0)
      throw InputError(option + ": give --window-tokens");
  }
}

}  // namespace dculab::cli
