#include "engine/evaluate/speculation_check.hpp"

#include <algorithm>

namespace dculab::engine {
namespace {

constexpr int kRounds = 3;

[[nodiscard]] std::vector<TextRequest> requests_of(std::span<const std::string> prompts, int max_tokens) {
  std::vector<TextRequest> requests;
  for (const std::string& prompt : prompts)
    requests.push_back({.prompt = prompt, .max_tokens = max_tokens, .eos = EosHandling::ignore});
  return requests;
}

[[nodiscard]] int count_identical(const Generation& one, const Generation& other) {
  int identical = 0;
  for (std::size_t index = 0; index < one.completions.size(); ++index)
    identical += one.completions[index].token_ids == other.completions[index].token_ids ? 1 : 0;
  return identical;
}

// The first place from `place` on where a word begins.
[[nodiscard]] std::size_t word_from(std::string_view text, std::size_t place) {
  if (place == 0) return 0;
  const std::size_t space = text.find_first_of(" \n", place);
  return space == std::string_view::npos ? text.size() : text.find_first_not_of(" \n", space);
}

}  // namespace

SpeculationCheck check_speculation(Generator& generator, std::span<const std::string> prompts, int max_tokens,
                                   const CheckProgress& progress) {
  const std::vector<TextRequest> requests = requests_of(prompts, max_tokens);
  SpeculationCheck check{.num_texts = static_cast<int>(prompts.size()), .num_identical = check.num_texts};
  const auto faster = [](Seconds best, Seconds now, int round) { return round == 0 ? now : std::min(best, now); };
  for (int round = 0; round < kRounds; ++round) {
    generator.set_drafting(Drafting::off);
    const Generation plain = generator.generate(requests);
    generator.set_drafting(Drafting::on);
    const Generation drafted = generator.generate(requests);
    check.num_tokens = plain.report.num_generated_tokens;
    check.plain = faster(check.plain, plain.report.duration, round);
    check.drafted = faster(check.drafted, drafted.report.duration, round);
    check.num_identical = std::min(check.num_identical, count_identical(plain, drafted));
    check.drafts = drafted.report.drafts;
    check.drafting = drafted.report.drafting;
    check.verifying = drafted.report.executor_time;
    if (progress) progress(static_cast<double>(round + 1) / kRounds);
  }
  return check;
}

std::vector<std::string> prompts_from(std::string_view text, int count, std::size_t bytes) {
  std::vector<std::string> prompts;
  for (int index = 0; index < count; ++index) {
    const std::size_t place = text.size() * static_cast<std::size_t>(index) / static_cast<std::size_t>(count);
    const std::size_t begin = std::min(word_from(text, place), text.size());
    std::size_t end = std::min(begin + bytes, text.size());
    if (end < text.size()) end = std::max(text.find_last_of(" \n", end), begin);
    if (end > begin && end <= text.size()) prompts.emplace_back(text.substr(begin, end - begin));
  }
  return prompts;
}

}  // namespace dculab::engine
