// What all figures of an answer are about, for the captions of its charts: what was asked, without what a sweep
// changes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "config/scenario_file.hpp"
#include "fields/field_list.hpp"
#include "study/answer/prediction.hpp"

namespace dculab::present {

struct Subject {
  std::optional<std::string> model{}, stack{}, weights{}, kv_cache_dtype{}, phase{};
  std::optional<int> kv_heads{};  // of a scenario where it changes the model's
  std::optional<int> devices{};   // that share the model, where they are several
  std::optional<int> batch{}, context_tokens{};
  std::optional<int> requests{}, prompt_tokens{}, output_tokens{};  // lengths where all are equal
};

// Throws InputError for a model that cannot be read.
[[nodiscard]] Subject subject_of(const config::Scenario& scenario);
[[nodiscard]] Subject subject_of(const study::Prediction& prediction);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::Subject> {
  using Subject = present::Subject;
  static constexpr std::string_view id = "subject";
  static constexpr std::string_view doc = "What all figures of an answer are about; keys that it sweeps are left out.";
  static constexpr auto fields =
      std::tuple(field("model", "its name", &Subject::model), field("stack", "whose kernels run", &Subject::stack),
                 field("weights", "their format", &Subject::weights),
                 field("kv_cache_dtype", "format of K and V", &Subject::kv_cache_dtype),
                 field("num_key_value_heads", "of a layer; of a scenario where it changes the model's", unit::count,
                       &Subject::kv_heads),
                 field("tensor_parallel_size", "devices that share the model, where they are several", unit::count,
                       &Subject::devices),
                 field("phase", "of a step: prefill or decode", &Subject::phase),
                 field("batch", "sequences of a step", unit::count, &Subject::batch),
                 field("context_tokens", "of each of them", unit::tokens, &Subject::context_tokens),
                 field("requests", "that are served", unit::count, &Subject::requests),
                 field("prompt_tokens", "of each of them, where all are equal", unit::tokens, &Subject::prompt_tokens),
                 field("output_tokens", "of each of them, where all are equal", unit::tokens, &Subject::output_tokens));
};

}  // namespace dculab
