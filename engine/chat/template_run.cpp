#include "engine/chat/template_run.hpp"

#include <algorithm>
#include <cstdint>
#include <map>

#include "engine/chat/template_functions.hpp"

namespace dculab::engine::chat {
namespace {

constexpr std::int64_t kMostSteps = 20'000'000;  // values and statements
constexpr std::size_t kLongestOutput = std::size_t{64} << 20;
constexpr int kDeepestCall = 50;  // macros in one another

enum class Flow : std::uint8_t { on, skip, stop };

using Scope = std::map<std::string, Value, std::less<>>;

class Run {
 public:
  Run(const Dict& variables, const std::string& file) : file_(file) {
    scopes_.emplace_back();
    for (const auto& [name, value] : variables) scopes_.front()[name] = value;
  }

  [[nodiscard]] std::string whole(const std::vector<Statement>& statements) {
    std::string output;
    run(statements, output);
    return output;
  }

 private:
  void count_step(int line) {
    if (++steps_ > kMostSteps) throw TemplateError(file_, line, "the template takes too many steps; does it end?");
  }

  Flow run(const std::vector<Statement>& statements, std::string& output) {
    for (const Statement& each : statements) {
      count_step(each.line);
      const Flow flow = run(each, output);
      if (output.size() > kLongestOutput) throw TemplateError(file_, each.line, "the text is longer than 64 MiB");
      if (flow != Flow::on) return flow;
    }
    return Flow::on;
  }

  Flow run(const Statement& statement, std::string& output) {
    switch (statement.kind) {
      case StatementKind::text:
        output += statement.text;
        break;
      case StatementKind::output:
        output += at_line(statement.line, [&] { return text_of(value(*statement.value)); });
        break;
      case StatementKind::condition:
        return run(is_true(value(*statement.value)) ? statement.body : statement.otherwise, output);
      case StatementKind::loop:
        return loop(statement, output);
      case StatementKind::assignment:
        at_line(statement.line, [&] { return assign(statement.targets, value(*statement.value)), 0; });
        break;
      case StatementKind::block: {
        std::string text;
        const Flow flow = run(statement.body, text);
        at_line(statement.line, [&] { return assign(statement.targets, text), 0; });
        return flow;
      }
      case StatementKind::macro:
        scopes_.back()[statement.macro->name] = statement.macro.get();
        break;
      case StatementKind::section:
        return run(statement.body, output);
      case StatementKind::skip:
        return Flow::skip;
      case StatementKind::stop:
        return Flow::stop;
    }
    return Flow::on;
  }

  // Says where, of what goes wrong without a place.
  template <class Work>
  auto at_line(int line, const Work& work) -> decltype(work()) {
    try {
      return work();
    } catch (const TemplateError& error) {
      if (std::string_view(error.what()).starts_with(file_ + ":")) throw;
      throw TemplateError(file_, line, error.what());
    }
  }

  void assign(const std::vector<std::string>& targets, const Value& value) {
    if (targets.size() > 1) {
      const List items = items_of(value);
      if (items.size() != targets.size())
        throw TemplateError(std::to_string(targets.size()) + " names for " + std::to_string(items.size()) + " values");
      for (std::size_t index = 0; index < targets.size(); ++index) scopes_.back()[targets[index]] = items[index];
      return;
    }
    const std::string& target = targets.front();
    const std::size_t dot = target.find('.');
    if (dot == std::string::npos) return static_cast<void>(scopes_.back()[target] = value);
    Namespace* space = found(target.substr(0, dot)).space();
    if (space == nullptr) throw TemplateError("'" + target.substr(0, dot) + "' is no namespace");
    const std::string name = target.substr(dot + 1);
    const auto place = std::ranges::find(space->attributes, name, &Dict::value_type::first);
    if (place == space->attributes.end())
      space->attributes.emplace_back(name, value);
    else
      place->second = value;
  }

  Flow loop(const Statement& statement, std::string& output) {
    const List items = at_line(statement.line, [&] { return loop_items(statement); });
    if (items.empty()) return run(statement.otherwise, output);
    Flow flow = Flow::on;
    for (std::size_t index = 0; index < items.size() && flow != Flow::stop; ++index) {
      count_step(statement.line);
      scopes_.emplace_back();
      at_line(statement.line, [&] { return assign(statement.targets, items[index]), 0; });
      scopes_.back()["loop"] = loop_state(items, index);
      flow = run(statement.body, output);
      scopes_.pop_back();
    }
    return Flow::on;
  }

  // Those that the loop's own condition lets through: `loop` counts no others.
  [[nodiscard]] List loop_items(const Statement& statement) {
    List items = items_of(value(*statement.value));
    if (!statement.condition) return items;
    List kept;
    for (Value& each : items) {
      scopes_.emplace_back();
      assign(statement.targets, each);
      if (is_true(value(*statement.condition))) kept.push_back(std::move(each));
      scopes_.pop_back();
    }
    return kept;
  }

  [[nodiscard]] static Value loop_state(const List& items, std::size_t index) {
    const auto at = static_cast<std::int64_t>(index), size = std::int64_t{std::ssize(items)};
    return Dict{{"index", at + 1},
                {"index0", at},
                {"revindex", size - at},
                {"revindex0", size - at - 1},
                {"first", at == 0},
                {"last", at + 1 == size},
                {"length", size},
                {"previtem", at > 0 ? items[index - 1] : Value(Undefined{"previtem"})},
                {"nextitem", at + 1 < size ? items[index + 1] : Value(Undefined{"nextitem"})}};
  }

  [[nodiscard]] Value found(std::string_view name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto place = scope->find(name); place != scope->end()) return place->second;
    if (is_function(name)) return static_cast<const Macro*>(nullptr);
    return Undefined{std::string(name)};
  }

  [[nodiscard]] Value value(const Expression& expression) {
    count_step(expression.line);
    return at_line(expression.line, [&] { return evaluated(expression); });
  }

  [[nodiscard]] Value part(const Expression& expression, std::size_t index) {
    return expression.parts[index] ? value(*expression.parts[index]) : Value(None{});
  }

  [[nodiscard]] Value evaluated(const Expression& expression) {
    switch (expression.kind) {
      case ExpressionKind::constant:
        return expression.constant;
      case ExpressionKind::name:
        return found(expression.name);
      case ExpressionKind::list:
        return list(expression);
      case ExpressionKind::dict:
        return dict(expression);
      case ExpressionKind::attribute:
        return item_at(part(expression, 0), expression.name);
      case ExpressionKind::item:
        return item_at(part(expression, 0), part(expression, 1));
      case ExpressionKind::slice:
        return sliced(part(expression, 0), part(expression, 1), part(expression, 2), part(expression, 3));
      case ExpressionKind::call:
        return called(expression);
      case ExpressionKind::method:
        return called_method(expression.name, part(expression, 0), arguments(expression, 1));
      case ExpressionKind::filter:
        return filtered(expression.name, part(expression, 0), arguments(expression, 1));
      case ExpressionKind::test:
        return tested(expression.name, part(expression, 0), arguments(expression, 1));
      case ExpressionKind::negation:
        return !is_true(part(expression, 0));
      case ExpressionKind::minus:
        return calculated("-", std::int64_t{0}, part(expression, 0));
      case ExpressionKind::conjunction:
      case ExpressionKind::disjunction:
        return either(expression);
      case ExpressionKind::arithmetic:
        return calculated(expression.name, part(expression, 0), part(expression, 1));
      case ExpressionKind::comparison:
        return comparison(expression);
      case ExpressionKind::conditional:
        if (is_true(part(expression, 1))) return part(expression, 0);
        return expression.parts[2] ? part(expression, 2) : Value();
    }
    return {};
  }

  // `and` and `or` give one of their sides.
  [[nodiscard]] Value either(const Expression& expression) {
    Value left = part(expression, 0);
    return is_true(left) == (expression.kind == ExpressionKind::disjunction) ? left : part(expression, 1);
  }

  [[nodiscard]] Value list(const Expression& expression) {
    List items;
    for (const ExpressionPtr& each : expression.parts) items.push_back(value(*each));
    return items;
  }

  [[nodiscard]] Value dict(const Expression& expression) {
    Dict entries;
    for (std::size_t index = 0; index < expression.parts.size(); index += 2) {
      const Value key = part(expression, index);
      if (!key.as<std::string>()) throw TemplateError("a key of a dict is a text here, not " + type_name(key));
      entries.emplace_back(*key.as<std::string>(), part(expression, index + 1));
    }
    return entries;
  }

  [[nodiscard]] Value comparison(const Expression& expression) {
    Value left = part(expression, 0);
    for (std::size_t index = 0; index < expression.operators.size(); ++index) {
      Value right = part(expression, index + 1);
      if (!holds(expression.operators[index], left, right)) return false;
      left = std::move(right);
    }
    return true;
  }

  [[nodiscard]] Arguments arguments(const Expression& call, std::size_t first) {
    Arguments given;
    for (std::size_t index = first; index < call.parts.size(); ++index) given.values.push_back(part(call, index));
    for (const auto& [name, each] : call.named) given.named.emplace_back(name, value(*each));
    return given;
  }

  [[nodiscard]] Value called(const Expression& call) {
    const Value callee = found(call.name);
    const Arguments given = arguments(call, 0);
    const auto* macro = callee.as<const Macro*>();
    if (macro == nullptr)
      throw TemplateError(callee.is_undefined() ? "'" + call.name + "' is undefined"
                                                : type_name(callee) + " cannot be called");
    if (*macro != nullptr) return expanded(**macro, given);
    return called_function(call.name, given);
  }

  // A macro sees what is defined outside of all loops, and its parameters.
  [[nodiscard]] Value expanded(const Macro& macro, const Arguments& given) {
    if (given.values.size() > macro.parameters.size())
      throw TemplateError("the macro " + macro.name + " takes fewer arguments");
    if (++depth_ > kDeepestCall) throw TemplateError("the macro " + macro.name + " calls itself without an end");
    std::vector<Scope> outer(std::make_move_iterator(scopes_.begin() + 1), std::make_move_iterator(scopes_.end()));
    scopes_.resize(1);
    scopes_.emplace_back();
    for (std::size_t index = 0; index < macro.parameters.size(); ++index) {
      const auto& [name, fallback] = macro.parameters[index];
      Value argument = given.at(index, name);
      if (argument.is_undefined() && fallback) argument = value(*fallback);
      scopes_.back()[name] = std::move(argument);
    }
    std::string text;
    run(macro.body, text);
    scopes_.resize(1);
    std::ranges::move(outer, std::back_inserter(scopes_));
    --depth_;
    return text;
  }

  const std::string& file_;
  std::vector<Scope> scopes_;
  std::int64_t steps_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string run_template(const std::vector<Statement>& statements, const Dict& variables, const std::string& file) {
  return Run(variables, file).whole(statements);
}

}  // namespace dculab::engine::chat
