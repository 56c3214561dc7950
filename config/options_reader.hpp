// Reads what a scenario says about the engine: kv_cache, attention, experts, engine, activations.
#pragma once

#include "config/groups_reader.hpp"
#include "config/key_tree.hpp"
#include "config/map_reader.hpp"
#include "config/speculative_reader.hpp"
#include "core/engine_options.hpp"

namespace dculab::config {

// The sections of a document, whose map `reader` reads, onto `options`; what drafts, and the second set of KV heads.
void read_engine_sections(MapReader& reader, EngineOptions& options, SpeculationChoice& speculation,
                          FewHeadsChoice& few_heads);

// The keys of these sections.
[[nodiscard]] std::vector<FileKey> engine_section_keys();

// Reads them from a document whose other sections are read elsewhere.
void read_options(const Node& document, EngineOptions& options, ProblemList& problems);

}  // namespace dculab::config
