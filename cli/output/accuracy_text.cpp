#include "cli/output/accuracy_text.hpp"

#include <ranges>

#include "cli/output/output.hpp"
#include "study/decide/measured_accuracy.hpp"

namespace dculab::cli {
namespace {

[[nodiscard]] std::string loss_text(double loss) {
  return (loss < 0 ? "gain " : "lose ") + percent(loss < 0 ? -loss : loss, 2);
}

}  // namespace

std::string elsewhere_text() {
  std::string text;
  for (const study::PublishedLosses& published : study::published_losses()) {
    text += (text.empty() ? "" : "; ") + published.model + " (" + published.metric + ")";
    const char* separator = ": ";
    for (const auto& [heads, loss] : std::views::reverse(published.by_kv_heads)) {
      text += separator + std::to_string(heads) + " KV head" + (heads == 1 ? "" : "s") + " " + loss_text(loss);
      separator = ", ";
    }
  }
  return "what fewer KV heads cost other models, which differ too much to decide unasked (accuracy.model=NAME lets "
         "one): " +
         text;
}

}  // namespace dculab::cli
