#include "present/output/conclusion.hpp"

namespace dculab::present {
namespace {

constexpr const char* kConclusion = "conclusion";

}  // namespace

void conclude(Report& report, const std::string& sentence) { report.json[kConclusion].push_back(sentence); }

void move_conclusion(Report& part, Report& whole) {
  if (!part.json.contains(kConclusion)) return;
  for (const Json& sentence : part.json[kConclusion]) conclude(whole, sentence.get<std::string>());
  part.json.erase(kConclusion);
}

std::string conclusion_text(const Report& report) {
  if (!report.json.contains(kConclusion)) return "";
  std::string text = "\nIn short\n";
  for (const Json& sentence : report.json[kConclusion]) text += sentence.get<std::string>() + "\n";
  return text;
}

}  // namespace dculab::present
