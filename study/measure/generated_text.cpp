#include "study/measure/generated_text.hpp"

#include <sstream>

#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "files/input.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] SamplingParams choose_sampling(const TextQuestion& question, const SamplingParams& defaults) {
  SamplingParams sampling = defaults;
  sampling.temperature = question.temperature.value_or(sampling.temperature);
  sampling.top_k = question.top_k.value_or(sampling.top_k);
  sampling.top_p = question.top_p.value_or(sampling.top_p);
  sampling.seed = question.seed.value_or(sampling.seed);
  return sampling;
}

// The prompt of each completion.
[[nodiscard]] std::vector<std::string> prompts_of_completions(const std::vector<engine::TextRequest>& requests) {
  std::vector<std::string> prompts;
  for (const engine::TextRequest& request : requests)
    prompts.insert(prompts.end(), static_cast<std::size_t>(request.n), request.prompt);
  return prompts;
}

// Samples share the blocks of their prompt.
void refuse_samples(const TextQuestion& question) {
  if (question.n == 1) return;
  if (const auto reasons = clashes(question.generator.engine.kv(), KvFeature::samples); !reasons.empty())
    throw InputError("--n", reasons.front());
}

[[nodiscard]] std::vector<engine::TextRequest> make_requests(const TextQuestion& question,
                                                             const std::vector<std::string>& prompts,
                                                             const engine::Generator& generator) {
  std::vector<engine::TextRequest> requests;
  for (const std::string& prompt : prompts)
    requests.push_back({.prompt = prompt,
                        .max_tokens = question.max_tokens,
                        .sampling = choose_sampling(question, generator.defaults().sampling),
                        .eos = question.ignore_eos ? EosHandling::ignore : EosHandling::stop,
                        .n = question.n});
  return requests;
}

}  // namespace

std::vector<std::string> read_prompts(const TextQuestion& question) {
  if (question.prompts_file.empty()) return {question.prompt};
  std::istringstream file(files::read_text(question.prompts_file, files::kLargestText));
  std::vector<std::string> prompts;
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) prompts.push_back(line);
  if (prompts.empty()) throw InputError(question.prompts_file, "has no prompts (one per line)");
  return prompts;
}

GeneratedText generate_text(const TextQuestion& question, const std::vector<std::string>& prompts,
                            const engine::OnText& on_text) {
  refuse_samples(question);
  engine::Generator generator(find_model(question.model), question.generator);
  const std::vector<engine::TextRequest> requests = make_requests(question, prompts, generator);
  return {prompts_of_completions(requests), generator.generate(requests, on_text, engine::WhenRefused::end_itself)};
}

void refuse_unserved_prompts(const TextQuestion& question, const engine::Generation& generation) {
  const std::size_t n = static_cast<std::size_t>(question.n), prompts = generation.completions.size() / n;
  std::size_t refused = 0, first = 0;
  for (std::size_t prompt = prompts; prompt-- > 0;) {
    if (generation.completions[prompt * n].refusal.empty()) continue;
    ++refused;
    first = prompt;
  }
  if (refused == 0) return;
  const std::string& reason = generation.completions[first * n].refusal;
  if (question.prompts_file.empty()) throw InputError("--prompt", reason);
  throw InputError(question.prompts_file, std::to_string(refused) + " of " + std::to_string(prompts) +
                                              " prompts cannot be served; prompt " + std::to_string(first + 1) + ": " +
                                              reason);
}

}  // namespace dculab::study
