// What a scenario asks and cannot be answered: better no answer than one to another question. All throw InputError.
#pragma once

#include <string>
#include <vector>

#include "config/scenario_file.hpp"
#include "core/activation_mode.hpp"
#include "model/model_shape.hpp"

namespace dculab::study {

// With all that was found of a key, "deployment.routing", and the line where the scenario has it; nothing where nothing
// was found.
void refuse_key(const config::Scenario& scenario, const std::string& key, const std::vector<std::string>& found);
void refuse_deployment(const config::Scenario& scenario, const std::vector<std::string>& found);

// When the model's weights do not go with the activations that are asked for.
void require_activations(ActivationMode activations, const ModelShape& model);

// What the scenario asks and the price of single steps cannot answer, such as serving.
void refuse_unsupported(const config::Scenario& scenario);

// The same for what is of one device; `what` asks: "a replay".
void require_one_device(const config::Scenario& scenario, const std::string& what);

}  // namespace dculab::study
