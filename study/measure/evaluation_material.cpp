#include "study/measure/evaluation_material.hpp"

#include <iterator>
#include <utility>

#include "config/questions_file.hpp"
#include "engine/evaluate/speculation_check.hpp"
#include "files/input.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] std::vector<engine::ChoiceItem> read_items(const std::string& file) {
  std::vector<engine::ChoiceItem> items;
  for (config::Question& question : config::read_questions_file(file))
    items.push_back({.prompt = question.context + "Question: " + question.stem + "\nAnswer:",
                     .context_bytes = question.context.size(),
                     .choices = std::move(question.choices),
                     .answer = question.answer});
  return items;
}

}  // namespace

EvaluationMaterial read_material(const std::string& text_file, const std::vector<std::string>& question_files) {
  EvaluationMaterial material;
  if (!text_file.empty()) material.text = files::read_text(text_file, files::kLargestText);
  for (const std::string& file : question_files) material.items.push_back(read_items(file));
  return material;
}

std::vector<std::string> prompts_of(const EvaluationMaterial& material, int count) {
  if (!material.text.empty()) return engine::prompts_from(material.text, count);
  std::vector<std::string> prompts;
  for (const engine::ChoiceItem& item : material.items.front())
    if (std::ssize(prompts) < count) prompts.push_back(item.prompt);
  return prompts;
}

}  // namespace dculab::study
