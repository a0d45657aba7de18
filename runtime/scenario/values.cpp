#include "runtime/scenario/values.hpp"
#include "runtime/base/printable.hpp"
#include "runtime/options/number_limits.hpp"
#include "runtime/options/unit_text.hpp"
#include "runtime/scenario/named_paths.hpp"
#include "runtime/scenario/unquoted_strings.hpp"
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <sstream>
namespace mneme {
namespace {

constexpr double sigma_max = 50.0; // exp(sigma x) is then finite for every normal draw x

/// True for a nonzero number whose magnitude is too small: below number_min, or below the lower bound if that is
/// smaller.
bool is_tiny(double value, const range<double>& bounds) {
  const auto smallest = bounds.low > 0.0 ? std::min(bounds.low, number_min) : number_min;
  return value != 0.0 && std::abs(value) < smallest;
}

bool in_range(double value, const range<double>& bounds) { // false for NaN
  const bool is_above = bounds.open_low ? value > bounds.low : value >= bounds.low;
  return is_above && value <= bounds.high && !is_tiny(value, bounds);
}

/// The value of a floating-point number or integer. Returns nullopt for other types.
std::optional<double> as_number(const toml::node& from) {
  if (const auto* number = from.as_floating_point())
    return number->get();
  if (const auto* integer = from.as_integer())
    return static_cast<double>(integer->get());
  return std::nullopt;
}

/// Adds an article: "an integer >= 1", "a size, as in ...". Lists of words stay unchanged.
std::string with_article(const std::string& text) {
  if (text.empty() || text.front() == '"')
    return text;
  return (std::string_view("aeiou").find(text.front()) == std::string_view::npos ? "a " : "an ") + text;
}

class value_reader {
public:
  value_reader(const key& into, const std::string& name, const toml::node& from, const scenario_layer& source)
      : into_(into), name_(name), from_(from), layer_(source) {}

  std::vector<scenario_error> take() { return std::move(problems_); }

  void operator()(bool* to) {
    if (const auto* value = from_.as_boolean())
      *to = value->get();
    else
      refuse(true, bare_truth());
  }
  void operator()(std::int64_t* to) {
    const auto* value = from_.as_integer();
    if (value && in_range(static_cast<double>(value->get()), into_.bounds))
      *to = value->get();
    else
      refuse(!value, bare_number());
  }
  void operator()(double* to) {
    const auto value = as_number(from_);
    if (value && in_range(*value, into_.bounds))
      *to = *value;
    else
      refuse(!value, bare_number());
  }
  void operator()(std::string* to) {
    const auto* value = from_.as_string();
    if (!value)
      return refuse();
    const auto& choices = into_.choices;
    if (!choices.empty() && std::find(choices.begin(), choices.end(), value->get()) == choices.end())
      return refuse_word(value->get());
    if (!is_utf8(value->get()))
      return refuse_bytes(found_text(from_));
    if (into_.chosen)
      into_.chosen(value->get());
    else
      *to = value->get();
  }
  void operator()(std::filesystem::path* to) {
    const auto* value = from_.as_string();
    if (!value)
      return refuse();
    if (value->get().find('\0') != std::string::npos)
      return refuse(false);
    if (into_.name == "weights" && value->get() == weights_as_drawn) {
      *to = weights_as_drawn;
      return;
    }
    auto path = value->get().empty() ? std::filesystem::path{} : (layer_.folder / value->get()).lexically_normal();
    if (!is_utf8(path.native()))
      return refuse_bytes(quote_text(path.string()));
    *to = std::move(path);
  }
  void operator()(virtual_duration* to) { read_with_unit(to, parse_duration, "s"); }
  void operator()(byte_size* to) { read_with_unit(to, parse_size, "B"); }
  void operator()(std::vector<std::int64_t>* to) {
    if (auto list = elements<std::int64_t>("integer"))
      *to = std::move(*list);
  }
  void operator()(std::vector<double>* to) {
    if (auto list = elements<double>("number"))
      *to = std::move(*list);
  }
  void operator()(std::vector<std::string>* to) {
    if (auto list = elements<std::string>("string"))
      *to = std::move(*list);
  }
  void operator()(device_value* to) {
    if (from_.is_array()) {
      if (auto list = elements<double>("number"))
        *to = std::move(*list);
    } else if (const auto* table = from_.as_table()) {
      read_log_normal(*to, *table);
    } else if (const auto value = as_number(from_); value && in_range(*value, into_.bounds)) {
      *to = *value;
    } else {
      const auto number = bare_number();
      refuse(!value, number.empty() ? bare_list() : number);
    }
  }
  void operator()(std::variant<std::string, std::vector<std::int64_t>>* to) {
    if (from_.is_array()) {
      if (auto list = elements<std::int64_t>("integer"))
        *to = std::move(*list);
      return;
    }
    std::string word;
    (*this)(&word);
    if (problems_.empty())
      *to = std::move(word);
  }
  void operator()(word_or_names* to) {
    if (const auto* array = from_.as_array())
      return read_names(*array, *to);
    std::string word;
    (*this)(&word);
    if (problems_.empty())
      *to = std::move(word);
  }

  void operator()(std::vector<profile_choice>* to) {
    const auto* array = from_.as_array();
    if (!array)
      return refuse();
    std::vector<profile_choice> choices;
    for (std::size_t i = 0; i < array->size(); ++i)
      if (const auto* table = (*array)[i].as_table())
        choices.push_back(choice_in(*table, name_ + "[" + std::to_string(i) + "]"));
      else
        add((*array)[i], name_ + "[" + std::to_string(i) + "] = " + found_text((*array)[i]) +
                             ": expected a profile and its share, as in { name = \"snapdragon-888\", share = 0.3 }");
    if (problems_.empty())
      *to = std::move(choices);
  }

private:
  void add(const toml::node& at, std::string text, problem_kind kind = problem_kind::other) {
    problems_.push_back({place_in(layer_, at.source()), std::move(text), kind});
  }

  /// Adds a problem. @param wrong_type true: also state the type found @param meant suggested value, or ""
  void refuse(bool wrong_type = true, const std::string& meant = "") {
    auto text = name_ + " = " + found_text(from_) + ": expected " + with_article(expected_text(into_));
    text += wrong_type ? ", found " + type_text(from_) : tiny_text(from_);
    add(from_, meant.empty() ? text : text + "; write " + meant, wrong_type ? problem_kind::type : problem_kind::other);
  }

  /// Continues the text "expected a number in [0, 1]" for a value within the bounds whose magnitude is too small.
  [[nodiscard]] std::string tiny_text(const toml::node& from) const {
    const auto value = as_number(from);
    if (!value || *value < into_.bounds.low || !is_tiny(*value, into_.bounds))
      return "";
    return ", and 0 or at least " + number_text(number_min) + " in magnitude";
  }

  /// Rejects a string with bytes that TOML does not allow, because otherwise the resolved scenario could not be parsed.
  void refuse_bytes(const std::string& shown) {
    add(from_, name_ + " = " + shown + ": expected UTF-8, since scenarios are UTF-8 text; use another name");
  }

  /// Suggests "true" for the strings "True" and "yes", "false" for "False" and "no". Returns "" for other values.
  [[nodiscard]] std::string bare_truth() const {
    const auto* text = from_.as_string();
    auto word = text ? text->get() : std::string();
    std::transform(word.begin(), word.end(), word.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    if (word == "true" || word == "yes" || word == "on")
      return "true";
    return word == "false" || word == "no" || word == "off" ? "false" : "";
  }

  /// Suggests a value for a number in a string, or for a whole number with decimal point if the key is an integer.
  /// Returns "" if there is none within the bounds.
  [[nodiscard]] std::string bare_number() const {
    const bool is_whole = std::holds_alternative<std::int64_t*>(into_.target);
    if (const auto* number = from_.as_floating_point())
      return is_whole ? whole_text(number->get()) : "";
    const auto* text = from_.as_string();
    if (!text)
      return {};
    const auto corrected = number_of(text->get());
    const auto written = corrected.empty() ? text->get() : corrected;
    const auto* const begin = written.data() + (written.starts_with('+') ? 1 : 0);
    double value = 0.0;
    const auto [end, error] = std::from_chars(begin, written.data() + written.size(), value);
    if (error != std::errc{} || end != written.data() + written.size() || !in_range(value, into_.bounds))
      return {};
    return is_whole ? whole_text(value) : written;
  }

  /// Suggests "5" for 5.0. Returns "" for 5.5 and for numbers outside of the bounds.
  [[nodiscard]] std::string whole_text(double value) const {
    const bool is_exact = std::abs(value) <= 0x1p53 && value == std::trunc(value);
    return is_exact && in_range(value, into_.bounds) ? std::to_string(static_cast<std::int64_t>(value)) : "";
  }

  /// Suggests a value for a list in `--set` with numbers that are not TOML. Returns "" if there is none.
  [[nodiscard]] std::string bare_list() const {
    const auto* text = from_.as_string();
    return text && text->get().starts_with('[') ? with_numbers_of_toml(text->get()) : "";
  }

  void refuse_word(const std::string& word) {
    const auto& choices = into_.choices;
    auto text = name_ + " = " + quote_text(word) + ": expected ";
    text += choices.size() == 1 ? quote_text(choices[0]) + ", the only choice in this version" : expected_text(into_);
    const auto meant = closest_match(word, choices);
    add(from_, meant.empty() || choices.size() == 1 ? text : text + "; did you mean " + quote_text(meant) + "?");
  }

  /// Reads a value with a unit. A number without unit is rejected, with the likely unit as suggestion.
  template <class Value, class Parse>
  void read_with_unit(Value* to, Parse parse, const std::string& unit) {
    const auto* text = from_.as_string();
    if (const auto value = text ? parse(text->get()) : std::nullopt) {
      *to = *value;
      return;
    }
    refuse(!text);
    const auto* whole = from_.as_integer();
    if (const auto meant = whole ? found_text(from_) + " " + unit : text ? text->get() + " " + unit : ""; parse(meant))
      problems_.back().text += "; write " + quote_text(meant);
  }

  /// Converts all elements of a list. Reports problems with location and index, and then returns nullopt.
  template <class Element>
  std::optional<std::vector<Element>> elements(const std::string& text) {
    const auto* array = from_.as_array();
    if (!array) {
      const auto list = bare_list();
      const bool is_element = std::is_same_v<Element, std::string> && from_.is_string();
      refuse(true, list.empty() && is_element ? "[" + found_text(from_) + "]" : list);
      return std::nullopt;
    }
    std::vector<Element> out;
    for (std::size_t i = 0; i < array->size(); ++i)
      if (auto slot = element<Element>((*array)[i]))
        out.push_back(std::move(*slot));
      else
        add((*array)[i],
            name_ + "[" + std::to_string(i) + "] = " + found_text((*array)[i]) + ": expected " + with_article(text) +
                element_bounds(text) +
                (has_type<Element>((*array)[i]) ? tiny_text((*array)[i]) : ", found " + type_text((*array)[i])),
            has_type<Element>((*array)[i]) ? problem_kind::other : problem_kind::type);
    return problems_.empty() ? std::optional(std::move(out)) : std::nullopt;
  }

  template <class Element>
  [[nodiscard]] std::optional<Element> element(const toml::node& from) const {
    if constexpr (std::is_same_v<Element, std::string>) {
      const auto* value = from.as_string();
      return value ? std::optional(value->get()) : std::nullopt;
    } else if constexpr (std::is_same_v<Element, std::int64_t>) {
      const auto* value = from.as_integer();
      const bool fits = value && in_range(static_cast<double>(value->get()), into_.bounds);
      return fits ? std::optional(value->get()) : std::nullopt;
    } else {
      const auto value = as_number(from);
      return value && in_range(*value, into_.bounds) ? value : std::nullopt;
    }
  }

  template <class Element>
  [[nodiscard]] static bool has_type(const toml::node& from) {
    return std::is_same_v<Element, std::string>    ? from.is_string()
           : std::is_same_v<Element, std::int64_t> ? from.is_integer()
                                                   : from.is_number();
  }

  /// Describes the bounds of one element of a list.
  [[nodiscard]] std::string element_bounds(const std::string& text) const {
    double unused = 0.0;
    key option{.target = &unused, .bounds = into_.bounds};
    return text == "string" ? "" : expected_text(option).substr(std::string_view("number").size());
  }

  /// Reads a list of names; integers are converted to decimal text.
  void read_names(const toml::array& array, word_or_names& to) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < array.size(); ++i)
      if (const auto* integer = array[i].as_integer())
        names.push_back(std::to_string(integer->get()));
      else if (const auto* text = array[i].as_string(); text && is_utf8(text->get()))
        names.push_back(text->get());
      else
        add(array[i], name_ + "[" + std::to_string(i) + "] = " + found_text(array[i]) +
                          ": expected a name or its number, found " + type_text(array[i]));
    if (problems_.empty())
      to = std::move(names);
  }

  void read_log_normal(device_value& to, const toml::table& table) {
    log_normal value;
    key_table keys;
    keys.number("median", value.median, into_.bounds, "");
    keys.number("sigma", value.sigma, {.low = 0.0, .high = sigma_max}, "");
    read_table(table, keys, name_);
    if (problems_.empty() && !table.contains("median"))
      add(table, name_ + " = " + found_text(table) + ": expected a median, as in { median = 1.0, sigma = 0.5 }");
    if (problems_.empty())
      to = value;
  }

  profile_choice choice_in(const toml::table& table, const std::string& name) {
    profile_choice choice;
    key_table keys;
    keys.text("name", choice.name, "");
    keys.path("file", choice.file, "");
    keys.text("text", choice.text, "");
    keys.text("link", choice.link, "");
    keys.number("share", choice.share, {.low = 0.0, .high = 1e9, .open_low = true}, "");
    read_table(table, keys, name);
    if (int{!choice.name.empty()} + int{!choice.file.empty()} + int{!choice.text.empty()} != 1)
      add(table, name + " = " + found_text(table) + ": expected one of name, file and text");
    if (layer_.is_received && !choice.file.empty())
      add(table, name + ".file names a file of another machine; expected the file's content");
    return choice;
  }

  /// Reads the keys of an inline table and reports unknown ones.
  void read_table(const toml::table& table, const key_table& keys, const std::string& name) {
    std::vector<std::string> known;
    for (const auto& key : keys.all())
      known.push_back(key.name);
    for (const auto& [key, node] : table) {
      const auto* option = keys.find(key.str());
      const auto full = name + "." + std::string(key.str());
      if (!option) {
        const auto meant = closest_match(key.str(), known);
        problems_.push_back({place_in(layer_, key.source()),
                             "unknown key '" + full + "'; " +
                                 (meant.empty() ? "expected " + words_text(known) : "did you mean '" + meant + "'?")});
        continue;
      }
      for (auto& problem : read_value(*option, full, node, layer_))
        problems_.push_back(std::move(problem));
    }
  }

  /// Joins words: "median and sigma".
  static std::string words_text(const std::vector<std::string>& words) {
    std::string text = words.front();
    for (std::size_t i = 1; i < words.size(); ++i)
      text += (i + 1 == words.size() ? " and " : ", ") + words[i];
    return text;
  }

  const key& into_;
  const std::string& name_;
  const toml::node& from_;
  const scenario_layer& layer_;
  std::vector<scenario_error> problems_;
};

} // namespace

std::vector<scenario_error> read_value(const key& into, const std::string& name, const toml::node& from,
                                       const scenario_layer& source) {
  value_reader reader(into, name, from, source);
  std::visit(reader, into.target);
  return reader.take();
}

std::string value_text(const toml::node& value) {
  if (const auto* text = value.as_string())
    return quote_text(text->get());
  if (const auto* number = value.as_floating_point())
    return number_text(number->get());
  if (const auto* integer = value.as_integer())
    return std::to_string(integer->get());
  if (const auto* truth = value.as_boolean())
    return truth->get() ? "true" : "false";
  if (const auto* list = value.as_array())
    return bracket_text(joined(*list, value_text));
  if (const auto* table = value.as_table()) {
    std::vector<std::string> entries;
    for (const auto& [key, node] : *table)
      entries.push_back(std::string(key.str()) + " = " + value_text(node));
    return "{ " + joined(entries, [](const std::string& entry) { return entry; }) + " }";
  }
  std::ostringstream out; // prints dates and times
  value.visit([&](const auto& node) {
    if constexpr (toml::is_value<decltype(node)>)
      out << node.get();
  });
  return out.str();
}

std::string found_text(const toml::node& value) {
  constexpr std::size_t length_max = 60;
  auto text = value_text(value);
  if (text.size() <= length_max)
    return text;
  auto end = length_max - 4;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end; // does not split a UTF-8 character
  return text.substr(0, end) + " ...";
}

std::string type_text(const toml::node& value) {
  switch (value.type()) {
  case toml::node_type::string:
    return "a string";
  case toml::node_type::integer:
    return "an integer";
  case toml::node_type::floating_point:
    return "a number";
  case toml::node_type::boolean:
    return "a boolean";
  case toml::node_type::array:
    return "a list";
  case toml::node_type::table:
    return "a table";
  default:
    return "a date or time";
  }
}

} // namespace mneme
