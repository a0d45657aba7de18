#include "runtime/options/keys.hpp"
#include "runtime/options/number_limits.hpp"
#include "runtime/options/unit_text.hpp"
#include <cmath>
namespace mneme {
namespace {

/// The declared bound, or the general bound if none was declared.
double low_bound(double low, double of_all) { return low == std::numeric_limits<double>::lowest() ? -of_all : low; }
double high_bound(double high, double of_all) { return high == std::numeric_limits<double>::max() ? of_all : high; }

range<double> bounds_of(range<double> stated) {
  return {.low = low_bound(stated.low, number_max),
          .high = high_bound(stated.high, number_max),
          .open_low = stated.open_low};
}

range<double> bounds_of(range<std::int64_t> stated) {
  constexpr auto of_all = static_cast<double>(integer_max);
  using limits = std::numeric_limits<std::int64_t>;
  return {.low = stated.low == limits::lowest() ? -of_all : static_cast<double>(stated.low),
          .high = stated.high == limits::max() ? of_all : static_cast<double>(stated.high),
          .open_low = stated.open_low};
}

/// Formats a bound: 0.5, 100000000, 1e12. Whole numbers have no decimal point; large numbers have an exponent.
std::string bound_text(double bound) {
  constexpr double whole_max = 1e9;
  if (std::abs(bound) <= whole_max && bound == std::trunc(bound))
    return std::to_string(static_cast<std::int64_t>(bound));
  if (bound == 0x1p63)
    return std::to_string(std::numeric_limits<std::int64_t>::max());
  auto text = number_text(bound);
  std::erase(text, '+');
  return text;
}

/// Formats bounds: " in [1, 5]" or " in (0, 1]".
std::string bounds_text(const range<double>& bounds) {
  return std::string(bounds.open_low ? " in (" : " in [") + bound_text(bounds.low) + ", " + bound_text(bounds.high) +
         "]";
}

/// Formats a choice of profiles as TOML: { name = "snapdragon-888", link = "lte", share = 0.3 }.
std::string choice_text(const profile_choice& choice) {
  const std::pair<const char*, std::string> words[] = {
      {"name", choice.name}, {"file", choice.file.string()}, {"text", choice.text}, {"link", choice.link}};
  std::string text = "{ ";
  for (const auto& [key, word] : words)
    if (!word.empty())
      text += std::string(key) + " = " + quote_text(word) + ", ";
  return text + "share = " + number_text(choice.share) + " }";
}

std::string list_text(const std::vector<std::int64_t>& list) {
  return bracket_text(joined(list, [](std::int64_t number) { return std::to_string(number); }));
}

struct present_value {
  std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
  std::string operator()(const std::int64_t* value) const { return std::to_string(*value); }
  std::string operator()(const double* value) const { return number_text(*value); }
  std::string operator()(const std::string* value) const { return quote_text(*value); }
  std::string operator()(const std::filesystem::path* value) const { return quote_text(value->string()); }
  std::string operator()(const virtual_duration* value) const { return quote_text(duration_text(*value)); }
  std::string operator()(const byte_size* value) const { return quote_text(size_text(*value)); }
  std::string operator()(const std::vector<std::int64_t>* value) const { return list_text(*value); }
  std::string operator()(const std::vector<double>* value) const { return bracket_text(joined(*value, number_text)); }
  std::string operator()(const std::vector<std::string>* value) const { return bracket_text(word_list(*value)); }
  std::string operator()(const device_value* value) const { return std::visit(*this, *value); }
  std::string operator()(const std::variant<std::string, std::vector<std::int64_t>>* value) const {
    const auto* word = std::get_if<std::string>(value);
    return word ? quote_text(*word) : list_text(std::get<1>(*value));
  }
  std::string operator()(const word_or_names* value) const {
    const auto* word = std::get_if<std::string>(value);
    return word ? quote_text(*word) : bracket_text(word_list(std::get<1>(*value)));
  }
  std::string operator()(const std::vector<profile_choice>* value) const {
    return bracket_text(joined(*value, choice_text));
  }
  // The three alternatives of device_value.
  std::string operator()(double value) const { return number_text(value); }
  std::string operator()(const std::vector<double>& list) const { return bracket_text(joined(list, number_text)); }
  std::string operator()(const log_normal& value) const {
    return "{ median = " + number_text(value.median) + ", sigma = " + number_text(value.sigma) + " }";
  }
};

struct expectation {
  const key& described;
  std::string operator()(const bool*) const { return "boolean"; }
  std::string operator()(const std::int64_t*) const { return "integer" + bounds_text(described.bounds); }
  std::string operator()(const double*) const { return "number" + bounds_text(described.bounds); }
  std::string operator()(const std::string*) const {
    return described.choices.empty() ? "string" : word_list(described.choices, " | ");
  }
  std::string operator()(const std::filesystem::path*) const { return "path (a string)"; }
  std::string operator()(const virtual_duration*) const {
    return "duration, as in \"30 s\" (ns, us, ms, s, min, h), at most " + quote_text(duration_text(duration_max));
  }
  std::string operator()(const byte_size*) const {
    return "size, as in \"4 MiB\" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB), at most " + quote_text(size_text(size_max));
  }
  std::string operator()(const std::vector<std::int64_t>*) const {
    return "list of integers" + bounds_text(described.bounds);
  }
  std::string operator()(const std::vector<double>*) const { return "list of numbers" + bounds_text(described.bounds); }
  std::string operator()(const std::vector<std::string>*) const { return "list of strings"; }
  std::string operator()(const device_value*) const {
    return "number" + bounds_text(described.bounds) +
           ", a list of them (one per client), or { median = 1.0, sigma = 0.5 }";
  }
  std::string operator()(const std::variant<std::string, std::vector<std::int64_t>>*) const {
    return word_list(described.choices, " | ") + " | list of integers" + bounds_text(described.bounds);
  }
  std::string operator()(const word_or_names*) const {
    return word_list(described.choices, " | ") + " | list of names";
  }
  std::string operator()(const std::vector<profile_choice>*) const {
    return "list of profiles, as in [{ name = \"snapdragon-888\", link = \"lte\", share = 0.3 }, { file = "
           "\"mine.toml\" }]";
  }
};

} // namespace

void key_table::flag(std::string name, bool& target, std::string meaning) {
  add({.name = std::move(name), .target = &target, .meaning = std::move(meaning)});
}

void key_table::integer(std::string name, std::int64_t& target, range<std::int64_t> bounds, std::string meaning) {
  add({.name = std::move(name), .target = &target, .meaning = std::move(meaning), .bounds = bounds_of(bounds)});
}

void key_table::number(std::string name, double& target, range<double> bounds, std::string meaning) {
  add({.name = std::move(name), .target = &target, .meaning = std::move(meaning), .bounds = bounds_of(bounds)});
}

void key_table::text(std::string name, std::string& target, std::string meaning) {
  add({.name = std::move(name), .target = &target, .meaning = std::move(meaning)});
}

void key_table::path(std::string name, std::filesystem::path& target, std::string meaning) {
  add({.name = std::move(name), .target = &target, .meaning = std::move(meaning)});
}

void key_table::duration(std::string name, virtual_duration& target, std::string meaning) {
  add({.name = std::move(name), .target = &target, .meaning = std::move(meaning)});
}

void key_table::size(std::string name, byte_size& target, std::string meaning) {
  add({.name = std::move(name), .target = &target, .meaning = std::move(meaning)});
}

void key_table::integers(std::string name, std::vector<std::int64_t>& target, range<std::int64_t> bounds,
                         std::string meaning) {
  add({.name = std::move(name), .target = &target, .meaning = std::move(meaning), .bounds = bounds_of(bounds)});
}

void key_table::numbers(std::string name, std::vector<double>& target, range<double> bounds, std::string meaning) {
  add({.name = std::move(name), .target = &target, .meaning = std::move(meaning), .bounds = bounds_of(bounds)});
}

void key_table::texts(std::string name, std::vector<std::string>& target, std::string meaning) {
  add({.name = std::move(name), .target = &target, .meaning = std::move(meaning)});
}

void key_table::device(std::string name, device_value& target, range<double> bounds, std::string meaning) {
  add({.name = std::move(name), .target = &target, .meaning = std::move(meaning), .bounds = bounds_of(bounds)});
}

void key_table::profiles(std::string name, std::vector<profile_choice>& target, std::string meaning) {
  add({.name = std::move(name), .target = &target, .meaning = std::move(meaning)});
}

void key_table::word_or_integers(std::string name, std::variant<std::string, std::vector<std::int64_t>>& target,
                                 std::vector<std::string> choices, std::string meaning) {
  add({.name = std::move(name),
       .target = &target,
       .meaning = std::move(meaning),
       .bounds = bounds_of(range<std::int64_t>{.low = 0}),
       .choices = std::move(choices)});
}

void key_table::word_or_name_list(std::string name, word_or_names& target, std::vector<std::string> choices,
                                  std::string meaning) {
  add({.name = std::move(name), .target = &target, .meaning = std::move(meaning), .choices = std::move(choices)});
}

void key_table::word(std::string name, std::string& target, std::vector<std::string> choices, std::string meaning) {
  add({.name = std::move(name), .target = &target, .meaning = std::move(meaning), .choices = std::move(choices)});
}

const key* key_table::find(std::string_view name) const noexcept {
  for (const auto& option : keys_)
    if (option.name == name)
      return &option;
  return nullptr;
}

void key_table::add(key option) {
  MNEME_CHECK(!find(option.name), option.name);
  option.default_text = current_text(option);
  keys_.push_back(std::move(option));
}

std::string current_text(const key& option) {
  return option.current ? quote_text(option.current()) : std::visit(present_value{}, option.target);
}

std::string expected_text(const key& option) { return std::visit(expectation{option}, option.target); }

} // namespace mneme
