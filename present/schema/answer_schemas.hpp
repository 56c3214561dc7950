// The JSON documents that commands answer with and the files that people write, and what each has.
#pragma once

#include <span>
#include <string_view>
#include <tuple>

#include "present/output/field_json.hpp"

namespace dculab::present {

struct AnswerSchema {
  std::string_view name;     // "recommend": the command, or "machine": the kind of file
  std::string_view id;       // "dculab/recommend/1": the document's `schema`
  std::string_view answers;  // what the document answers, or what the file says
  Json (*make)();            // JSON Schema, draft 2020-12
};

struct ReportedSchemas {
  std::span<const AnswerSchema> schemas;
};

// In the order of `dculab --help`.
[[nodiscard]] std::span<const AnswerSchema> answer_schemas();

// All of them, in rows.
[[nodiscard]] Report schemas_report();

// By its name, or by its id. Throws InputError where there is none.
[[nodiscard]] const AnswerSchema& find_answer_schema(std::string_view name);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::AnswerSchema> {
  using Schema = present::AnswerSchema;
  static constexpr std::string_view id = "answer_schema";
  static constexpr std::string_view doc = "A document that a command answers with, or a file that it reads.";
  static constexpr auto fields = std::tuple(
      field("name", "the command, or the kind of file", &Schema::name), field("schema", "of the document", &Schema::id),
      field("answers", "what the document answers, or what the file says", &Schema::answers));
};

template <>
struct FieldList<present::ReportedSchemas> {
  static constexpr std::string_view id = "schemas";
  static constexpr std::string_view doc = "The documents that have schemas.";
  static constexpr std::string_view csv_rows = "schemas";
  static constexpr auto fields =
      std::tuple(field("schemas", "in the order of the commands", &present::ReportedSchemas::schemas));
};

}  // namespace dculab
