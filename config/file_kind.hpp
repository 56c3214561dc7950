// What a file is, said before what it lacks: one line where it is of another kind, instead of every key that is wrong.
#pragma once

#include <string>
#include <string_view>

#include "fields/node.hpp"

namespace dculab::config {

// Throws InputError where the document has no schema, or that of another kind of file than `schema`
// ("dculab/scenario/1"). Another version of it is left to the reader.
void require_kind(const std::string& file, const Node& document, std::string_view schema);

// Throws InputError where a text that should be a machine, a stack or a scenario is a file of another program.
void refuse_other_format(const std::string& file, std::string_view text);

}  // namespace dculab::config
