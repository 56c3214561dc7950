// The fields of what `dculab evaluate` answers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/dtype.hpp"
#include "present/measure/evaluation_report.hpp"
#include "present/values/draft_report.hpp"
#include "present/values/expert_report.hpp"
#include "present/values/retention_fields.hpp"

namespace dculab::present {

// A row, with what was asked of all.
struct ReportedEvaluation {
  const study::EvaluationTasks& tasks;
  const study::EvaluationRow& row;
};

struct ReportedQuestions {
  const std::string& file;
  const engine::ChoiceEvaluation& found;
};

struct ReportedDecode {
  const engine::DecodeSpeedOptions& asked;
  Seconds step;
};

struct ReportedEvaluations {
  const study::EvaluationTasks& tasks;
  const std::vector<study::EvaluationRow>& rows;
};

[[nodiscard]] DraftFigures check_drafts(const engine::SpeculationCheck& check);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<engine::PositionLoss> {
  using Part = engine::PositionLoss;
  static constexpr std::string_view id = "position_loss";
  static constexpr std::string_view doc = "Loss of the tokens at some positions of a window.";
  static constexpr auto fields =
      std::tuple(field("begin", "the first position", &Part::begin), field("end", "behind the last one", &Part::end),
                 field("tokens", "there", unit::tokens, [](const Part& part) { return part.loss.num_tokens; }),
                 field("loss", "nats a token; null without tokens", [](const Part& part) {
                   return or_null(when(part.loss.num_tokens > 0, [&] { return part.loss.mean(); }));
                 }));
};

template <>
struct FieldList<engine::TextEvaluation> {
  using Text = engine::TextEvaluation;
  static constexpr std::string_view id = "text_evaluation";
  static constexpr std::string_view doc = "How well a model predicts a text.";

  [[nodiscard]] static OrNull<double> of(const Text& text, double (engine::Agreement::*figure)() const) {
    return or_null(when(text.agreement.has_value(), [&] { return ((*text.agreement).*figure)(); }));
  }

  static constexpr auto fields = std::tuple(
      field("tokens", "that were predicted", unit::tokens, [](const Text& text) { return text.loss.num_tokens; }),
      field("loss", "nats a token", [](const Text& text) { return text.loss.mean(); }),
      field("perplexity", "e to the loss", [](const Text& text) { return text.loss.perplexity(); }),
      field("by_position", "of the window", &Text::by_position),
      field("mean_kl", "from the reference, nats a token; null without one",
            [](const Text& text) { return of(text, &engine::Agreement::mean_kl); }),
      field("top1_agreement", "tokens whose likeliest successor is the reference's; null without one", unit::share,
            [](const Text& text) { return of(text, &engine::Agreement::top1); }));
};

template <>
struct FieldList<present::ReportedQuestions> {
  using Self = present::ReportedQuestions;
  static constexpr std::string_view id = "questions";
  static constexpr std::string_view doc = "Multiple-choice questions of a file.";

  [[nodiscard]] static double share(const Self& reported, int right) {
    return static_cast<double>(right) / reported.found.num_items;
  }

  static constexpr auto fields = std::tuple(
      field("file", "its path", [](const Self& reported) { return reported.file; }),
      field("items", "questions", unit::count, [](const Self& reported) { return reported.found.num_items; }),
      field("accuracy", "answered by the likeliest choice", unit::share,
            [](const Self& reported) { return share(reported, reported.found.right); }),
      field("accuracy_per_character", "by the likeliest a character", unit::share,
            [](const Self& reported) { return share(reported, reported.found.right_per_character); }));
};

template <>
struct FieldList<present::ReportedDecode> {
  using Self = present::ReportedDecode;
  static constexpr std::string_view id = "decode_speed";
  static constexpr std::string_view doc = "Decode steps that were timed.";
  static constexpr auto fields =
      std::tuple(field("batch", "sequences", unit::count, [](const Self& reported) { return reported.asked.batch; }),
                 field("context_tokens", "of each when it begins", unit::tokens,
                       [](const Self& reported) { return reported.asked.context; }),
                 field("steps", "at least", unit::count, [](const Self& reported) { return reported.asked.steps; }),
                 field("step_seconds", "median", &Self::step),
                 field("tokens_per_second", "of the median step", unit::tokens_per_second,
                       [](const Self& reported) { return reported.asked.batch / reported.step.value(); }));
};

template <>
struct FieldList<engine::SpeculationCheck> {
  using Check = engine::SpeculationCheck;
  static constexpr std::string_view id = "speculation_check";
  static constexpr std::string_view doc = "Texts generated with drafts and without.";
  static constexpr auto fields =
      std::tuple(inlined([](const Check& check) { return present::check_drafts(check); }),
                 field("texts", "that were generated", unit::count, &Check::num_texts),
                 field("identical_texts", "that drafting did not change", unit::count, &Check::num_identical),
                 field("generated_tokens", "of all texts", unit::tokens, &Check::num_tokens),
                 field("tokens_per_second_alone", "without drafts", unit::tokens_per_second, &Check::plain_rate),
                 field("tokens_per_second", "with drafts", unit::tokens_per_second, &Check::drafted_rate));
};

template <>
struct FieldList<present::ReportedEvaluation> {
  using Self = present::ReportedEvaluation;
  static constexpr std::string_view id = "evaluation";
  static constexpr std::string_view doc = "One model, stored and run in one way.";

  [[nodiscard]] static std::vector<present::ReportedQuestions> choices(const Self& reported) {
    std::vector<present::ReportedQuestions> choices;
    for (std::size_t index = 0; index < reported.row.choices.size(); ++index)
      choices.push_back({reported.tasks.question_files[index], reported.row.choices[index]});
    return choices;
  }

  static constexpr auto fields = std::tuple(
      field("model", "its folder or name", [](const Self& reported) { return reported.row.model; }),
      field("num_attention_heads", "of a layer", unit::count,
            [](const Self& reported) { return reported.row.num_attention_heads; }),
      field("num_key_value_heads", "of a layer", unit::count,
            [](const Self& reported) { return reported.row.num_key_value_heads; }),
      field("kv_cache_dtype", "format of K and V", names_up_to<Dtype::fp4>(),
            [](const Self& reported) { return name(reported.row.kv_cache_dtype); }),
      field("activations", "in products with quantized weights", names_up_to<ActivationMode::fp8>(),
            [](const Self& reported) { return name(reported.row.activations); }),
      field("kv_retention", "which tokens the KV cache keeps",
            [](const Self& reported) { return reported.row.retention; }),
      field("text", "null without a text", [](const Self& reported) { return or_null(reported.row.text); }),
      field("choices", "file by file", &choices),
      field("weight_bytes", "of the model", [](const Self& reported) { return reported.row.weight_bytes; }),
      field("kv_bytes_per_token", "of K and V", [](const Self& reported) { return reported.row.kv_bytes_per_token; }),
      field("kv_bytes_per_sequence", "of the context asked for, with what is dropped and kept beside",
            [](const Self& reported) { return reported.row.kv_bytes_per_sequence; }),
      field("kv_bytes_loaded", "of them, by a decode",
            [](const Self& reported) { return reported.row.kv_bytes_loaded; }),
      field("decode", "null where nothing was timed",
            [](const Self& reported) {
              const auto& step = reported.row.decode_step;
              return or_null(when(step.has_value(), [&] {
                return present::ReportedDecode{reported.tasks.decode, *step};
              }));
            }),
      field("experts", "of a mixture",
            [](const Self& reported) {
              return when(!reported.row.experts.is_empty(), [&] { return reported.row.experts; });
            }),
      field("speculation", "where texts were generated with drafts",
            [](const Self& reported) { return reported.row.speculation; }));
};

template <>
struct FieldList<present::ReportedEvaluations> {
  using Self = present::ReportedEvaluations;
  static constexpr std::string_view id = "evaluations";
  static constexpr std::string_view doc = "How good models are, and how fast.";
  static constexpr std::string_view csv_rows = "rows";

  [[nodiscard]] static OrNull<std::string> text_or_null(const std::string& text) {
    return or_null(when(!text.empty(), [&] { return text; }));
  }
  [[nodiscard]] static std::vector<present::ReportedEvaluation> rows(const Self& reported) {
    std::vector<present::ReportedEvaluation> rows;
    for (const study::EvaluationRow& row : reported.rows) rows.push_back({reported.tasks, row});
    return rows;
  }

  static constexpr auto fields = std::tuple(
      field("text_file", "null: no text", [](const Self& reported) { return text_or_null(reported.tasks.text_file); }),
      field("window_tokens", "that the text is cut into; null: no text", unit::tokens,
            [](const Self& reported) {
              return or_null(when(!reported.tasks.text_file.empty(), [&] { return reported.tasks.window; }));
            }),
      field("context_tokens", "that the models were made for", unit::tokens,
            [](const Self& reported) { return reported.tasks.context; }),
      field("streamed", "token by token, not in chunks",
            [](const Self& reported) { return reported.tasks.mode == engine::ScoringMode::streamed; }),
      field("reference", "a model; null: none",
            [](const Self& reported) { return text_or_null(reported.tasks.reference); }),
      field("rows", "in the order asked for", &rows));
};

}  // namespace dculab
