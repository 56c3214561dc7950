// Which of the two forms of latent attention (MLA) is cheaper on a machine, by how many new tokens a step has.
#pragma once

#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "model/model_shape.hpp"
#include "sim/hardware/machine.hpp"
#include "sim/tables/latent_forms.hpp"

namespace dculab::study {

struct LatentFormsQuestion {
  config::Scenario scenario;  // its model on its first machine
  int batch = 1;              // sequences
  int context = 1024;         // tokens of each, the new ones among them
};

struct LatentFormsAnswer {
  ModelShape model;  // what each device has of it
  sim::Machine machine;
  std::vector<sim::LatentForms> rows;  // new tokens 1, 2, 4 ... up to the whole context
  std::vector<std::string> unserved;   // what is priced although the machine's stack does not run it
};

// Throws InputError for a model without latent attention.
[[nodiscard]] LatentFormsAnswer compare_latent_forms(const LatentFormsQuestion& question);

}  // namespace dculab::study
