#include "present/values/accuracy_text.hpp"

#include <string>
#include <utility>
#include <vector>

#include "study/decide/measured_accuracy.hpp"

namespace dculab::present {

Table elsewhere_table() {
  Table table;
  table.title = "What fewer KV heads cost other models";
  table.columns = {"model", "metric", "KV heads", "accuracy loss"};
  for (const study::PublishedLosses& published : study::published_losses())
    for (auto loss = published.by_kv_heads.rbegin(); loss != published.by_kv_heads.rend(); ++loss)
      table.rows.push_back(
          {published.model, published.metric, std::to_string(loss->first), signed_percent(loss->second, 2)});
  table.notes = {
      "As published (scenarios/accuracy/published.csv). They differ too much to decide for another model unasked: "
      "--set accuracy.model=NAME takes one of them, accuracy.file=FILE figures of your own."};
  return table;
}

}  // namespace dculab::present
