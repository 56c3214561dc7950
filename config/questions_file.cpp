#include "config/questions_file.hpp"

#include <algorithm>

#include "config/map_reader.hpp"
#include "fields/json_text.hpp"
#include "fields/printable_text.hpp"
#include "files/input.hpp"

namespace dculab::config {
namespace {

constexpr std::size_t kLargestQuestionsFile = std::size_t{1} << 28;

// Some files number what others name.
void read_name(MapReader& reader, const Node* node, std::string& name) {
  if (node == nullptr) return;
  if (node->is(ScalarType::integer))
    name = node->text;
  else
    reader.read(*node, name);
}

// The labels, in order; the texts go into `question`.
std::vector<std::string> read_choices(MapReader& reader, Question& question) {
  std::vector<std::string> labels;
  const Node* choices = reader.required("choices");
  if (choices == nullptr) return labels;
  if (choices->kind != NodeKind::list || choices->children.size() < 2) {
    reader.complain(*choices, "question.choices: must be a list of at least two {text, label}");
    return labels;
  }
  for (const Node& choice : choices->children) {
    MapReader fields(&choice, "question.choices", reader.problems());
    fields.required("text", question.choices.emplace_back());
    read_name(fields, fields.required("label"), labels.emplace_back());
  }
  return labels;
}

// The same of the Hub's layout: a list of texts and one of labels.
std::vector<std::string> read_listed_choices(MapReader& reader, Question& question) {
  std::vector<std::string> labels;
  MapReader choices = reader.required_map("choices");
  const Node* texts = choices.required("text");
  const Node* names = choices.required("label");
  if (texts == nullptr || names == nullptr) return labels;
  if (texts->kind != NodeKind::list || names->kind != NodeKind::list || texts->children.size() < 2 ||
      texts->children.size() != names->children.size()) {
    choices.complain(*texts, "choices: text and label must be lists of one length, at least two");
    return labels;
  }
  for (const Node& text : texts->children) choices.read(text, question.choices.emplace_back());
  for (const Node& name : names->children) read_name(choices, &name, labels.emplace_back());
  return labels;
}

Question read_question(const Node& node, ProblemList& list) {
  Question question;
  MapReader reader(&node, "", list);
  read_name(reader, reader.optional("id"), question.id);
  const Node* context = reader.optional("context");
  if (context != nullptr && !(context->kind == NodeKind::scalar && context->text.empty()))
    reader.read(*context, question.context);
  std::vector<std::string> labels;
  const Node* asked = node.find("question");
  if (asked != nullptr && asked->kind == NodeKind::scalar) {
    reader.required("question", question.stem);
    labels = read_listed_choices(reader, question);
  } else {
    MapReader inner = reader.required_map("question");
    inner.required("stem", question.stem);
    labels = read_choices(inner, question);
  }
  std::string key;
  read_name(reader, reader.required("answerKey"), key);
  const auto found = std::ranges::find(labels, key);
  if (found == labels.end() && !labels.empty() && !key.empty())
    list.add(node, "answerKey: no choice has the label " + in_quotes(key));
  question.answer = static_cast<int>(found - labels.begin());
  return question;
}

}  // namespace

std::vector<Question> read_questions(const std::string& file, const std::string& text) {
  ProblemList list(file);
  std::vector<Question> questions;
  int line = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string record = text.substr(begin, end - begin);
    begin = end + 1;
    ++line;
    if (record.find_first_not_of(" \t\r") == std::string::npos) continue;
    questions.push_back(read_question(parse_json(file, line, record), list));
  }
  list.throw_if_any();
  if (questions.empty()) throw InputError(file, "has no questions (one JSON object per line, in ARC's format)");
  return questions;
}

std::vector<Question> read_questions_file(const std::string& path) {
  return read_questions(path, files::read_text(path, kLargestQuestionsFile));
}

}  // namespace dculab::config
