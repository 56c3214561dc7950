#include <string>
#include <utility>

#include "bindings/python/keywords.hpp"
#include "bindings/python/questions.hpp"
#include "config/weight_format_text.hpp"
#include "core/error.hpp"
#include "core/kv/table.hpp"
#include "present/study/teaching_tables.hpp"

namespace nb = nanobind;

namespace dculab::python {
namespace {

void take_model(Keywords& keywords, study::TableModel& model) {
  keywords.take("model", model.name);
  keywords.take_count("kv_heads", model.kv_heads);
  keywords.take("lecture", model.lecture);
}

[[nodiscard]] Dtype take_dtype(Keywords& keywords, const char* key) {
  std::string text = "f16";
  keywords.take(key, text);
  const auto dtype = parse_dtype(text);
  if (!dtype) throw InputError(key, "'" + text + "' is not a dtype");
  return *dtype;
}

}  // namespace

Work read_intensity(nb::dict given) {
  Keywords keywords(std::move(given));
  study::IntensityQuestion question;
  std::string phase = "prefill";
  take_model(keywords, question.model);
  keywords.take("phase", phase);
  keywords.take_count("tokens", question.tokens);
  keywords.take_count("batch", question.batch);
  keywords.take("layer", question.layer);
  question.dtype = take_dtype(keywords, "dtype");
  keywords.take("machine", question.machines);
  keywords.refuse_others();
  question.both_phases = phase == "both";
  if (phase != "prefill" && phase != "decode" && !question.both_phases)
    throw InputError("phase", "is prefill, decode or both");
  question.phase = phase == "decode" ? Phase::decode : Phase::prefill;
  return [question](const Progress&) { return present::intensity_report(question, study::layer_intensity(question)); };
}

Work read_footprint(nb::dict given) {
  Keywords keywords(std::move(given));
  study::FootprintQuestion question{.model = {}, .weights = {}, .request = {.tokens = 2048, .batch = 1}};
  std::string weights = "checkpoint", kv_cache = "f16";
  take_model(keywords, question.model);
  keywords.take_count("tokens", question.request.tokens);
  keywords.take_count("batch", question.request.batch);
  keywords.take("dtype", weights);
  question.request.kv_cache_dtype = take_dtype(keywords, "kv_dtype");
  keywords.take("kv_dtype", kv_cache);
  keywords.take("machine", question.machines);
  keywords.refuse_others();
  if (weights != "checkpoint") question.weights = config::parse_weight_format(weights);
  if (!is_kv_format(question.request.kv_cache_dtype))
    throw InputError("kv_dtype", "'" + kv_cache + "' is no format of a KV cache; use one of " + kv_format_names());
  return [question](const Progress&) { return present::footprint_report(question, study::model_footprint(question)); };
}

}  // namespace dculab::python
