// Folders of models that tests of several programs run.
#pragma once

#include <string>

namespace dculab {

// Hidden size 32, which makes groups of 16; 4 query heads; a tokenizer.
inline const std::string kTextModel = DCULAB_SOURCE_DIR "/tests/golden/llama/text";
// The one that the program comes with.
inline const std::string kShippedModel = DCULAB_SOURCE_DIR "/scenarios/models/dculab-tiny";

}  // namespace dculab
