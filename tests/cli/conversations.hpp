// Conversations that the shipped model is served.
#pragma once

#include <string>

namespace dculab::cli::test {

inline const std::string kConversations = DCULAB_SOURCE_DIR "/scenarios/workloads/dculab-tiny-sharegpt.json";

}  // namespace dculab::cli::test
