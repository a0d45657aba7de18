#include "runtime/modules/code_check.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/modules/allowed_operators.hpp"
#include "runtime/modules/code_limits.hpp"
#include "runtime/modules/module_graph.hpp"
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <torch/csrc/jit/frontend/parser.h>
#include <unordered_set>
namespace mneme {
namespace {

namespace jit = torch::jit;

constexpr std::size_t refusals_max = 20;

/// Syntax tree nodes that the check supports. `with` blocks, closures, globals and decorators are rejected.
// a table
// clang-format off
constexpr std::array known_constructs{
    jit::TK_IF,           jit::TK_FOR,         jit::TK_WHILE,        jit::TK_ASSIGN,
    jit::TK_AUG_ASSIGN,   jit::TK_RETURN,      jit::TK_EXPR_STMT,    jit::TK_RAISE,
    jit::TK_ASSERT,       jit::TK_PASS,        jit::TK_BREAK,        jit::TK_CONTINUE,
    jit::TK_DELETE,       jit::TK_IF_EXPR,     jit::TK_AND,          jit::TK_OR,
    jit::TK_NOT,          jit::TK_IS,          jit::TK_ISNOT,        jit::TK_IN,
    jit::TK_NOTIN,        jit::TK_EQ,          jit::TK_NE,           jit::TK_LE,
    jit::TK_GE,           jit::TK_POW,         jit::TK_LSHIFT,       jit::TK_RSHIFT,
    jit::TK_FLOOR_DIV,    jit::TK_UNARY_MINUS, jit::TK_CONST,        jit::TK_STRINGLITERAL,
    jit::TK_TRUE,         jit::TK_FALSE,       jit::TK_NONE,         jit::TK_NONE_TYPE,
    jit::TK_CAST,         jit::TK_APPLY,       jit::TK_SUBSCRIPT,    jit::TK_SLICE_EXPR,
    jit::TK_VAR,          jit::TK_STARRED,     jit::TK_LIST_LITERAL, jit::TK_TUPLE_LITERAL,
    jit::TK_DICT_LITERAL, jit::TK_LIST_COMP,   jit::TK_DICT_COMP,    jit::TK_DOTS,
    jit::TK_LIST,         jit::TK_OPTION,      jit::TK_IDENT,        jit::TK_STRING,
    jit::TK_ATTRIBUTE,    jit::TK_INFERRED,    jit::TK_NOTHING,      jit::TK_PLUS_EQ,
    jit::TK_MINUS_EQ,     jit::TK_TIMES_EQ,    jit::TK_DIV_EQ,       jit::TK_MOD_EQ,
    jit::TK_BIT_OR_EQ,    jit::TK_BIT_AND_EQ,  jit::TK_BIT_XOR_EQ,   jit::TK_LSHIFT_EQ,
    jit::TK_RSHIFT_EQ,    jit::TK_POW_EQ};
// clang-format on

bool is_known_construct(int kind) {
  constexpr std::string_view letters = "<>+-*/%@~&|^."; // kinds of single-letter tokens
  return std::find(known_constructs.begin(), known_constructs.end(), kind) != known_constructs.end() ||
         (kind > 0 && kind < 128 && letters.find(static_cast<char>(kind)) != std::string_view::npos);
}

/// The names in an expression such as a.b.c, and whether it begins with a variable; (a.b)(x).c does not.
struct name_chain {
  std::vector<std::string> names{};
  bool from_variable = false;
};

name_chain chain_of(const jit::TreeRef& tree) {
  if (tree->kind() == jit::TK_VAR)
    return {{jit::Var(tree).name().name()}, true};
  if (tree->kind() != '.')
    return {};
  const jit::Select select(tree);
  auto chain = chain_of(select.value().tree());
  chain.names.push_back(select.selector().name());
  return chain;
}

/// Names of all members and methods that the archive's classes declare.
class declared_names {
public:
  void add(const jit::ClassDef& defined) {
    for (const auto& statement : defined.body())
      if (statement.kind() == jit::TK_DEF)
        names_.insert(jit::Def(statement).name().name());
      else if (statement.kind() == jit::TK_ASSIGN && jit::Assign(statement).lhs().kind() == jit::TK_VAR)
        names_.insert(jit::Var(jit::Assign(statement).lhs()).name().name());
  }
  [[nodiscard]] bool contains(const std::string& name) const { return names_.contains(name); }

private:
  std::unordered_set<std::string> names_;
};

/// Visits definitions and collects the reasons to reject them.
class code_walk {
public:
  explicit code_walk(const declared_names& names) : names_(names) {}

  void visit(const jit::TreeRef& definition) {
    if (definition->kind() == jit::TK_DEF)
      return function(jit::Def(definition));
    const jit::ClassDef defined(definition);
    if (defined.superclass().present()) {
      const auto parent = chain_of(defined.superclass().get().tree()).names;
      if (parent != std::vector<std::string>{"Module"} && parent != std::vector<std::string>{"NamedTuple"})
        refuse(definition, fmt::format("class {} is derived from {}; expected Module or NamedTuple: interfaces and "
                                       "enumerations are not taken",
                                       defined.name().name(), fmt::join(parent, ".")));
    }
    for (const auto& statement : defined.body())
      if (statement.kind() == jit::TK_DEF)
        function(jit::Def(statement));
      else if (statement.kind() == jit::TK_ASSIGN)
        member(jit::Assign(statement));
      else
        refuse(statement.tree(), fmt::format("a class holds '{}'", jit::kindToString(statement.kind())));
  }

  /// One text per distinct reason, with its first location and the number of other locations.
  [[nodiscard]] std::vector<std::string> refusals() const {
    std::vector<std::string> texts;
    for (const auto& [reason, place, others] : refusals_) {
      const auto more = others > 0 ? fmt::format(" and {} more", others) : "";
      texts.push_back(place.empty() ? reason : fmt::format("{} ({}{})", reason, place, more));
    }
    return texts;
  }

private:
  struct refusal {
    std::string reason, first_place; // "activation.py:8"
    std::size_t others = 0;          // number of other locations with the same reason
  };

  void refuse(const jit::TreeRef& at, const std::string& reason) {
    const auto known = std::find_if(refusals_.begin(), refusals_.end(),
                                    [&](const refusal& earlier) { return earlier.reason == reason; });
    if (known != refusals_.end()) {
      ++known->others;
    } else if (refusals_.size() < refusals_max) {
      std::string place;
      if (!at->isAtom())
        if (const auto position = at->range().file_line_col()) {
          const auto& [file, line, column] = *position;
          place = fmt::format("{}:{}", file.substr(file.rfind('/') + 1), line);
        }
      refusals_.push_back({.reason = reason, .first_place = place});
    }
  }

  void function(const jit::Def& defined) {
    const auto& name = defined.name().name();
    constexpr std::array<std::string_view, 5> called_by_itself{"__setstate__", "__getstate__", "__enter__", "__exit__",
                                                               "__del__"};
    if (std::find(called_by_itself.begin(), called_by_itself.end(), name) != called_by_itself.end())
      refuse(defined.tree(),
             fmt::format("its code defines {}, which would run by itself, before the module is checked; "
                         "leave it out",
                         name));
    for (const auto& parameter : defined.decl().params()) {
      if (parameter.type().present())
        expression(parameter.type().get().tree());
      if (parameter.defaultValue().present() && !is_plain(parameter.defaultValue().get().tree()))
        refuse(parameter.tree(),
               fmt::format("the default of {}'s argument {} is no plain value; LibTorch would evaluate "
                           "it while it loads the file",
                           name, parameter.ident().name()));
    }
    if (defined.decl().return_type().present())
      expression(defined.decl().return_type().get().tree());
    for (const auto& statement : defined.statements())
      expression(statement.tree());
  }

  /// Checks a statement in a class body: `name : type`, `name : Final[type] = value` or `__parameters__ = [...]`.
  void member(const jit::Assign& assigned) {
    const bool is_named = assigned.lhs().kind() == jit::TK_VAR;
    const auto name = is_named ? jit::Var(assigned.lhs()).name().name() : std::string{};
    if (name == "__forward_hooks__" || name == "__forward_pre_hooks__")
      return refuse(assigned.tree(), "its code has hooks; remove them before it is exported");
    if (assigned.type().present())
      expression(assigned.type().get().tree());
    if (!assigned.rhs().present())
      return;
    if (!is_named) // __annotations__["0"] = type
      expression(assigned.rhs().get().tree());
    else if (!is_plain(assigned.rhs().get().tree()))
      refuse(assigned.tree(),
             fmt::format("the constant {} of a class is no plain value; LibTorch would evaluate it while "
                         "it loads the file",
                         name));
  }

  /// True for literals (numbers, strings, booleans) and for lists, tuples and dictionaries of literals.
  bool is_plain(const jit::TreeRef& tree) {
    switch (tree->kind()) {
    case jit::TK_CONST:
    case jit::TK_STRINGLITERAL:
    case jit::TK_TRUE:
    case jit::TK_FALSE:
    case jit::TK_NONE:
    case jit::TK_NONE_TYPE:
      return true;
    case jit::TK_VAR: {
      const auto& name = jit::Var(tree).name().name();
      return name == "inf" || name == "nan";
    }
    case jit::TK_APPLY:
      return is_plain_call(jit::Apply(tree));
    case jit::TK_UNARY_MINUS:
    case jit::TK_LIST_LITERAL:
    case jit::TK_TUPLE_LITERAL:
    case jit::TK_DICT_LITERAL:
    case jit::TK_LIST:
      return std::all_of(tree->trees().begin(), tree->trees().end(),
                         [this](const auto& part) { return is_plain(part); });
    default:
      return false;
    }
  }

  /// True for annotate(List[int], []) and torch.device("cpu").
  bool is_plain_call(const jit::Apply& call) {
    const auto called = chain_of(call.callee().tree()).names;
    const auto inputs = call.inputs();
    if (!call.attributes().empty())
      return false;
    if (called == std::vector<std::string>{"annotate"} && inputs.size() == 2) {
      expression(inputs[0].tree());
      return is_plain(inputs[1].tree());
    }
    return called == std::vector<std::string>{"torch", "device"} && inputs.size() == 1 &&
           inputs[0].kind() == jit::TK_STRINGLITERAL;
  }

  void expression(const jit::TreeRef& tree) {
    if (!is_known_construct(tree->kind()))
      return refuse(
          tree, fmt::format("its code has '{}', which no net needs; leave it out", jit::kindToString(tree->kind())));
    if (tree->kind() == jit::TK_VAR || tree->kind() == '.') {
      const auto chain = chain_of(tree);
      if (chain.from_variable)
        return name(tree, chain.names);
    }
    if (tree->kind() == '.')
      method(tree, jit::Select(tree).selector().name());
    for (const auto& part : tree->trees())
      expression(part);
  }

  void name(const jit::TreeRef& tree, const std::vector<std::string>& names) {
    const auto whole = fmt::format("{}", fmt::join(names, "."));
    if (names[0] == "torch" || names[0] == "ops") {
      const bool of_tensors = names[0] == "torch" && names.size() == 2, of_any = names[0] == "ops" && names.size() == 3;
      const auto called = of_tensors ? "aten::" + names[1] : of_any ? names[1] + "::" + names[2] : std::string{};
      if (!is_allowed_operator(called))
        refuse(tree,
               fmt::format("its code calls {}, which is none of the operators that a module may use; leave it out",
                           called.empty() ? whole : called));
    } else if (names[0] == "__torch__") {
      if (whole.starts_with("__torch__.torch.classes"))
        refuse(tree, fmt::format("its code names {}, a class of LibTorch's own and not of the file", whole));
    } else if (names[0] == "print") {
      refuse(tree, "its code calls print; leave it out");
    } else if (names[0] == "fork" || names[0] == "awaitable") {
      refuse(tree, fmt::format("its code calls {}; a module computes in one thread", names[0]));
    } else if (names[0] == "CONSTANTS") {
      if (names.size() < 2)
        refuse(tree, "its code names CONSTANTS without a constant");
      for (std::size_t i = 2; i < names.size(); ++i)
        method(tree, names[i]);
    } else {
      for (std::size_t i = 1; i < names.size(); ++i)
        method(tree, names[i]);
    }
  }

  /// Checks `value.selected`: a name that no class of the archive declares must be an allowed operator.
  void method(const jit::TreeRef& tree, const std::string& selected) {
    if (!names_.contains(selected) && !is_allowed_operator("aten::" + selected) &&
        !is_allowed_operator("prim::" + selected))
      refuse(tree,
             fmt::format("its code calls .{}, which is neither a member of its classes nor an operator that a module "
                         "may use",
                         selected));
  }

  const declared_names& names_;
  std::vector<refusal> refusals_;
};

/// Parses the class and function definitions of a file in the same order as LibTorch's importer.
std::vector<jit::TreeRef> parsed(const code_file& file) {
  jit::Parser parser(std::make_shared<jit::Source>(file.text, file.name, 1));
  std::vector<jit::TreeRef> definitions;
  auto& lexer = parser.lexer();
  while (lexer.cur().kind != jit::TK_EOF)
    if (lexer.cur().kind == jit::TK_CLASS_DEF)
      definitions.push_back(parser.parseClass());
    else if (lexer.cur().kind == jit::TK_DEF)
      definitions.push_back(parser.parseFunction(false));
    else
      throw std::invalid_argument(
          fmt::format("'{}' stands where a class or a function is expected", jit::kindToString(lexer.cur().kind)));
  return definitions;
}

} // namespace

std::vector<std::string> code_errors(const std::vector<code_file>& files) {
  std::vector<jit::TreeRef> definitions;
  declared_names names;
  for (const auto& file : files) {
    if (auto excess = code_limit_error(file.text); !excess.empty())
      return {std::move(excess)};
    const auto why = torch_error_of([&] {
      for (auto& definition : parsed(file)) {
        if (definition->kind() == jit::TK_CLASS_DEF)
          names.add(jit::ClassDef(definition));
        definitions.push_back(std::move(definition));
      }
    });
    if (!why.empty())
      return {fmt::format("its code in {} cannot be read: {}", file.name, why)};
  }
  code_walk walk(names);
  for (const auto& definition : definitions)
    walk.visit(definition);
  return walk.refusals();
}

} // namespace mneme
