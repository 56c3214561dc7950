#include "engine/chat/template_statements.hpp"

#include <algorithm>
#include <initializer_list>

#include "engine/chat/template_expressions.hpp"
#include "engine/chat/template_functions.hpp"
#include "fields/printable_text.hpp"

namespace dculab::engine::chat {
namespace {

constexpr int kDeepestBlock = 100;  // blocks in one another

class StatementReader {
 public:
  StatementReader(std::string_view source, const std::string& file)
      : file_(file), tokens_(tokens_of(source, file)), reader_(tokens_, file_) {}

  [[nodiscard]] std::vector<Statement> read() {
    std::vector<Statement> statements = body({});
    require_known_calls();
    return statements;
  }

 private:
  // Up to {% and one of these words, which is taken; without any, to the end.
  [[nodiscard]] std::vector<Statement> body(std::initializer_list<std::string_view> ends) {
    if (++depth_ > kDeepestBlock) reader_.refuse("more than " + std::to_string(kDeepestBlock) + " blocks in another");
    std::vector<Statement> statements;
    for (;;) {
      if (reader_.is_next(TokenKind::end)) {
        if (ends.size() > 0) reader_.refuse("the template ends before " + in_quotes(*std::prev(ends.end())));
        break;
      }
      if (reader_.skip(TokenKind::block_begin)) {
        const std::string word = reader_.expect_name();
        end_ = word;
        if (std::ranges::count(ends, word) > 0) break;
        statements.push_back(statement(word));
      } else if (reader_.skip(TokenKind::output_begin)) {
        statements.push_back(make(StatementKind::output));
        statements.back().value = reader_.expression();
        static_cast<void>(reader_.expect(TokenKind::output_end, "}}"));
      } else {
        statements.push_back(make(StatementKind::text));
        statements.back().text = reader_.expect(TokenKind::data, "text").text;
      }
    }
    --depth_;
    return statements;
  }

  [[nodiscard]] Statement make(StatementKind kind) const {
    Statement made;
    made.kind = kind;
    made.line = reader_.next().line;
    return made;
  }

  void end_block() { static_cast<void>(reader_.expect(TokenKind::block_end, "%}")); }

  [[nodiscard]] Statement statement(const std::string& word) {
    if (word == "if") return condition();
    if (word == "for") return loop();
    if (word == "set") return assignment();
    if (word == "macro") return macro();
    if (word == "generation") {
      Statement section = make(StatementKind::section);
      end_block();
      section.body = body({"endgeneration"});
      end_block();
      return section;
    }
    if (word == "continue" || word == "break") {
      Statement leave = make(word == "break" ? StatementKind::stop : StatementKind::skip);
      if (loops_ == 0) reader_.refuse(in_quotes(word) + " stands outside of a loop");
      end_block();
      return leave;
    }
    reader_.refuse_construct("{% " + word + " %}");
  }

  [[nodiscard]] Statement condition() {
    Statement made = make(StatementKind::condition);
    made.value = reader_.expression();
    end_block();
    made.body = body({"elif", "else", "endif"});
    if (end_ == "elif") {
      if (++depth_ > kDeepestBlock) reader_.refuse("more than " + std::to_string(kDeepestBlock) + " {% elif %}");
      made.otherwise.push_back(condition());
      --depth_;
      return made;
    }
    if (end_ == "else") {
      end_block();
      made.otherwise = body({"endif"});
    }
    end_block();
    return made;
  }

  [[nodiscard]] std::vector<std::string> targets() {
    const bool has_brackets = reader_.skip(TokenKind::sign, "(");
    std::vector<std::string> names = {reader_.expect_name()};
    while (reader_.skip(TokenKind::sign, ",")) names.push_back(reader_.expect_name());
    if (has_brackets) reader_.expect_sign(")");
    return names;
  }

  [[nodiscard]] Statement loop() {
    Statement made = make(StatementKind::loop);
    made.targets = targets();
    if (!reader_.skip(TokenKind::name, "in")) reader_.refuse("expected 'in' in {% for %}");
    made.value = reader_.disjunction();
    if (reader_.skip(TokenKind::name, "if")) made.condition = reader_.expression();
    if (reader_.is_next(TokenKind::name, "recursive")) reader_.refuse_construct("{% for ... recursive %}");
    end_block();
    ++loops_;
    made.body = body({"else", "endfor"});
    --loops_;
    if (end_ == "else") {
      end_block();
      made.otherwise = body({"endfor"});
    }
    end_block();
    return made;
  }

  [[nodiscard]] Statement assignment() {
    Statement made = make(StatementKind::assignment);
    made.targets = targets();
    if (reader_.skip(TokenKind::sign, ".")) made.targets.front() += "." + reader_.expect_name();
    if (reader_.skip(TokenKind::sign, "=")) {
      made.value = reader_.expression();
      end_block();
      return made;
    }
    if (reader_.is_next(TokenKind::sign, "|")) reader_.refuse_construct("{% set name | filter %}");
    made.kind = StatementKind::block;
    end_block();
    made.body = body({"endset"});
    end_block();
    return made;
  }

  [[nodiscard]] Statement macro() {
    Statement made = make(StatementKind::macro);
    auto read = std::make_shared<Macro>();
    read->name = reader_.expect_name();
    reader_.expect_sign("(");
    while (!reader_.skip(TokenKind::sign, ")")) {
      std::string name = reader_.expect_name();
      ExpressionPtr fallback = reader_.skip(TokenKind::sign, "=") ? reader_.expression_in_list() : nullptr;
      read->parameters.emplace_back(std::move(name), std::move(fallback));
      if (!reader_.is_next(TokenKind::sign, ")")) reader_.expect_sign(",");
    }
    end_block();
    const int loops = std::exchange(loops_, 0);
    read->body = body({"endmacro"});
    loops_ = loops;
    if (reader_.next().kind == TokenKind::name) reader_.take();  // {% endmacro name %}
    end_block();
    macros_.push_back(read->name);
    made.macro = std::move(read);
    return made;
  }

  // A function that nobody defines would fail only when a conversation reaches it.
  void require_known_calls() const {
    for (const auto& [name, line] : reader_.calls())
      if (!is_function(name) && std::ranges::count(macros_, name) == 0)
        throw InputError(file_, line, not_in_subset("the function " + in_quotes(name)));
  }

  std::string file_;
  std::vector<Token> tokens_;
  ExpressionReader reader_;
  std::string end_;  // the word that ended the last body
  std::vector<std::string> macros_;
  int loops_ = 0, depth_ = 0;
};

}  // namespace

std::vector<Statement> read_template(std::string_view source, const std::string& file) {
  return StatementReader(source, file).read();
}

}  // namespace dculab::engine::chat
