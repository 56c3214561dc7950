// What `dculab evaluate` found, as a table and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/engine_options.hpp"
#include "core/expert_histogram.hpp"
#include "engine/evaluate/choice_evaluation.hpp"
#include "engine/evaluate/decode_speed.hpp"
#include "engine/evaluate/speculation_check.hpp"
#include "engine/evaluate/text_evaluation.hpp"
#include "present/output/report.hpp"

namespace dculab::present {

// What was asked of all models alike.
struct EvaluationTasks {
  std::string text_file;  // empty: no text
  int window = 0;         // tokens
  int context = 0;        // tokens that the models were made for; a window may be longer
  engine::ScoringMode mode = engine::ScoringMode::chunked;
  std::vector<std::string> question_files;
  std::string reference;                            // empty: none
  engine::DecodeSpeedOptions decode{.context = 0};  // steps 0: not measured
  int num_prompts = 32, max_tokens = 64;            // of the comparison with and without drafts
};

// One model, stored and run in one way.
struct EvaluationRow {
  std::string model;
  Dtype kv_cache_dtype = Dtype::f16;
  ActivationMode activations = ActivationMode::exact;
  KvRetention retention;
  std::optional<engine::TextEvaluation> text;
  std::vector<engine::ChoiceEvaluation> choices;  // [question_files]
  int num_attention_heads = 0, num_key_value_heads = 0;
  Bytes weight_bytes;
  Bytes kv_bytes_per_token;
  Bytes kv_bytes_per_sequence;  // of decode.context tokens, with what retention drops and KIVI keeps in F16
  Bytes kv_bytes_loaded;        // of them, by a decode: what is kept, or critical blocks and the bounds of all
  std::optional<Seconds> decode_step;
  std::optional<engine::SpeculationCheck> speculation;
  ExpertHistogram experts;  // of text and questions; empty of a model without experts
};

[[nodiscard]] Report evaluation_report(const EvaluationTasks& tasks, const std::vector<EvaluationRow>& rows);

}  // namespace dculab::present
