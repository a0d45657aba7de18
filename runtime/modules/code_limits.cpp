#include "runtime/modules/code_limits.hpp"
#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <vector>
namespace mneme {
namespace {

constexpr std::size_t brackets_max = 200, operators_max = 1000, indentation_max = 1000;

/// Scans code character by character. An expression ends at a comma, or at a line end outside of brackets.
class code_scan {
public:
  explicit code_scan(std::string_view code) : code_(code) {}

  std::string excess() {
    while (at_ < code_.size() && excess_.empty())
      step();
    return excess_;
  }

private:
  void step() {
    const char letter = code_[at_];
    if (letter == '"' || letter == '\'')
      return skip_text(letter);
    if (letter == '#')
      return skip_to_line_end();
    if (std::isalpha(static_cast<unsigned char>(letter)) || letter == '_')
      return read_word();
    ++at_;
    if (letter == '[' && follows_value_ && next_is(']'))
      excess_ = "its code takes an element and does not say which; no program writes it so";
    if (letter != ' ')
      follows_value_ = letter == ')' || letter == ']' || std::isdigit(static_cast<unsigned char>(letter));
    if (letter == '\n')
      return start_line();
    if (letter == ',')
      operators_.back() = 0;
    else if (letter == '(' || letter == '[' || letter == '{')
      open();
    else if ((letter == ')' || letter == ']' || letter == '}') && operators_.size() > 1)
      operators_.pop_back();
    else if (std::string_view("+-*/%@&|^~<>=!.").find(letter) != std::string_view::npos)
      count();
  }

  [[nodiscard]] bool next_is(char letter) const {
    const auto next = code_.find_first_not_of(" \t\n", at_);
    return next != std::string_view::npos && code_[next] == letter;
  }

  void skip_text(char quote) {
    follows_value_ = true;
    for (++at_; at_ < code_.size() && code_[at_] != quote; ++at_)
      at_ += code_[at_] == '\\' ? 1 : 0;
    ++at_;
  }
  void skip_to_line_end() { at_ = std::min(code_.find('\n', at_), code_.size()); }

  void read_word() {
    constexpr std::array<std::string_view, 7> operators{"not", "and", "or", "if", "else", "is", "in"};
    const auto first = at_;
    while (at_ < code_.size() && (std::isalnum(static_cast<unsigned char>(code_[at_])) || code_[at_] == '_'))
      ++at_;
    const auto word = code_.substr(first, at_ - first);
    const bool is_operator = std::find(operators.begin(), operators.end(), word) != operators.end();
    follows_value_ = !is_operator && word != "return";
    if (is_operator)
      count();
  }

  void start_line() {
    if (operators_.size() > 1)
      return;
    operators_.back() = 0;
    const auto indented = std::min(code_.find_first_not_of(" \t", at_), code_.size()) - at_;
    if (indented > indentation_max)
      excess_ =
          fmt::format("a line of its code is indented by {} columns; at most {} are taken", indented, indentation_max);
  }

  void open() {
    count(); // counted too, because calls and subscripts can be chained
    operators_.push_back(0);
    if (operators_.size() > brackets_max)
      excess_ = fmt::format("brackets of its code nest deeper than {}; no program writes them so", brackets_max);
  }

  void count() {
    if (++operators_.back() > operators_max)
      excess_ =
          fmt::format("an expression of its code has more than {} operators; no program writes it so", operators_max);
  }

  std::string_view code_;
  std::size_t at_ = 0;
  bool follows_value_ = false;            // the previous token is a name, a number, a string or a closing bracket
  std::vector<std::size_t> operators_{0}; // operators in the current expression, one count per open bracket level
  std::string excess_;
};

} // namespace

std::string code_limit_error(std::string_view code) { return code_scan(code).excess(); }

} // namespace mneme
