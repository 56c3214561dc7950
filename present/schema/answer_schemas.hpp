// The JSON documents that commands answer with, and what each has.
#pragma once

#include <span>
#include <string_view>

#include "present/output/report.hpp"

namespace dculab::present {

struct AnswerSchema {
  std::string_view name;     // "recommend": the command
  std::string_view id;       // "dculab/recommend/1": the document's `schema`
  std::string_view answers;  // what the document answers
  Json (*make)();            // JSON Schema, draft 2020-12
};

// In the order of `dculab --help`.
[[nodiscard]] std::span<const AnswerSchema> answer_schemas();

// All of them, in rows.
[[nodiscard]] Report schemas_report();

// By its command, or by its id. Throws InputError where there is none.
[[nodiscard]] const AnswerSchema& find_answer_schema(std::string_view name);

}  // namespace dculab::present
