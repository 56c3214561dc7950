// What is asked of `evaluate`, and which of it is refused before any model is loaded.
#pragma once

#include <string>
#include <vector>

#include "cli/scenario/speculation_choices.hpp"
#include "engine/generate/generator.hpp"
#include "present/engine/evaluation_report.hpp"
#include "present/output/show.hpp"

namespace dculab::cli {

struct EvaluateChoices {
  std::vector<std::string> models;
  std::vector<std::string> kv_cache_dtypes{"f16"};
  std::vector<std::string> activations{"exact"};
  std::vector<std::string> retentions{"all"};
  KvRetention retention_sizes;
  bool stream = false;
  int windows_at_once = 8;
  int max_position_embeddings = 0;  // that texts may have, 0: the models'
  std::string device = "cpu";
  std::string activation_dtype = "f16";
  present::EvaluationTasks tasks;
  SpeculationChoices speculation;
  engine::GeneratorOptions generator;
  present::OutputOptions output;
};

// Options that do nothing beside the others. Throws InputError.
void refuse_idle_options(const CLI::App& command, const EvaluateChoices& choices);

// What cannot be judged, or not so. Throws InputError.
void refuse_unjudgeable(const EvaluateChoices& choices, const std::vector<present::EvaluationRow>& rows);

}  // namespace dculab::cli
