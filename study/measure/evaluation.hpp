// What a model, a way to store it or a way to cache K and V costs in accuracy, and what it saves: judged on the engine.
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
#include "engine/generate/generator.hpp"
#include "engine/measure/step_bench.hpp"
#include "study/scenario/speculation.hpp"

namespace dculab::study {

// What was asked of all models alike.
struct EvaluationTasks {
  std::string text_file;  // empty: no text
  int window = 0;         // tokens; of a question 0: as many as the models are made for, within limits
  int context = 0;        // tokens that the models were made for; a window may be longer
  engine::ScoringMode mode = engine::ScoringMode::chunked;
  std::vector<std::string> question_files;
  std::string reference;                            // empty: none
  engine::DecodeSpeedOptions decode{.context = 0};  // steps 0: not measured; of a question context 0: a default
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

struct EvaluationQuestion {
  std::vector<std::string> models;  // folders, or names under scenarios/models
  // Ways to run them, in all combinations; a model is run with the activations that its weights go with, or exact ones.
  std::vector<Dtype> kv_cache_dtypes{Dtype::f16};
  std::vector<ActivationMode> activations{ActivationMode::exact};
  std::vector<KvRetention> retentions{KvRetention{}};
  int windows_at_once = 8;          // of a text that is judged token by token
  int max_position_embeddings = 0;  // that texts may have; 0: the models'
  EvaluationTasks tasks;
  engine::GeneratorOptions generator{};  // of all rows alike: device, threads, block size
  std::optional<DraftChoice> drafter{};  // texts are generated with it and without
};

struct EvaluationAnswer {
  EvaluationTasks tasks;            // with the window and the contexts that were taken
  std::vector<EvaluationRow> rows;  // in the order of models, activations, retentions, formats
};

// The rows before anything is judged. Throws InputError for a model that cannot be read.
[[nodiscard]] std::vector<EvaluationRow> evaluation_rows(const EvaluationQuestion& question);

// What cannot be judged, or not so, is refused before any model is loaded. Throws InputError.
void refuse_unjudgeable(const EvaluationQuestion& question, const std::vector<EvaluationRow>& rows);

// Throws InputError.
[[nodiscard]] EvaluationAnswer evaluate_models(const EvaluationQuestion& question,
                                               const engine::BenchProgress& progress);

}  // namespace dculab::study
