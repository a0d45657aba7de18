#include "runtime/data/table_words.hpp"
#include "runtime/base/csv_fields.hpp"
#include "runtime/base/decimal_text.hpp"
#include "runtime/base/lower_case.hpp"
#include "runtime/base/printable.hpp"
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <numeric>
#include <optional>
namespace mneme {
namespace {

/// True for the notations of "nan" that programs write for missing values.
bool is_nan(std::string_view word) { return word == "nan" || word == "NaN" || word == "-nan"; }

/// True for words that mean a missing value or a number that is not finite.
bool is_no_finite_number(std::string_view word) {
  constexpr std::array words{"nan", "na", "n/a", "null", "none", "inf", "infinity"};
  auto lower = lower_case(word);
  if (lower.starts_with('-') || lower.starts_with('+'))
    lower.erase(0, 1);
  return std::find(words.begin(), words.end(), lower) != words.end();
}

/// Numeric values of the words. Returns an empty list unless all words are numbers.
std::vector<decimal> values_of(const std::vector<std::string>& words) {
  std::vector<decimal> values;
  for (const auto& word : words)
    if (auto value = parse_decimal(word))
      values.push_back(std::move(*value));
    else
      return {};
  return values;
}

/// The permutation that sorts the words. @param values their numeric values; empty: sort by bytes
std::vector<std::size_t> order_of(const std::vector<std::string>& words, const std::vector<decimal>& values) {
  std::vector<std::size_t> order(words.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (!values.empty() && values[a] != values[b])
      return values[a] < values[b];
    return words[a] < words[b];
  });
  return order;
}

} // namespace

std::int32_t table_words::number_of(std::string_view word, std::size_t line) {
  const auto [entry, is_new] = numbers_.try_emplace(std::string(word), static_cast<std::int32_t>(words_.size()));
  if (is_new) {
    words_.emplace_back(word);
    lines_.push_back(line);
  }
  return entry->second;
}

diagnostics table_words::validate(const std::string& path) const {
  diagnostics errors;
  const auto add = [&](std::size_t at, std::string text) {
    if (errors.size() < csv::diagnostics_max)
      errors.push_back({fmt::format("{}:{}", path, lines_[at]), std::move(text)});
  };
  const auto is_number = [](const std::string& word) { return parse_decimal(word).has_value(); };
  const bool any_number = std::any_of(words_.begin(), words_.end(), is_number);
  const bool only_numbers = any_number && std::all_of(words_.begin(), words_.end(), [&](const std::string& word) {
                              return is_number(word) || is_no_finite_number(word);
                            });
  for (std::size_t at = 0; at < words_.size(); ++at)
    if (is_nan(words_[at]) || (only_numbers && is_no_finite_number(words_[at])))
      add(at, fmt::format("the {} is '{}', a missing value or no finite number; expected a {}: fill it in, or leave "
                          "the row out",
                          noun_, printable(words_[at]), noun_));
  const auto values = values_of(words_);
  if (values.empty())
    return errors;
  const auto order = order_of(words_, values);
  for (std::size_t i = 1; i < order.size(); ++i)
    if (values[order[i - 1]] == values[order[i]]) {
      const auto earlier = std::min(order[i - 1], order[i]), later = std::max(order[i - 1], order[i]);
      add(later, fmt::format("the {} '{}' is the same number as '{}' on line {}; write each {} in one way", noun_,
                             printable(words_[later]), printable(words_[earlier]), lines_[earlier], noun_));
    }
  return errors;
}

std::vector<std::string> table_words::sorted(std::vector<std::int32_t>& first,
                                             std::vector<std::int32_t>& second) const {
  const auto order = order_of(words_, values_of(words_));
  std::vector<std::string> sorted_words;
  std::vector<std::int32_t> place(words_.size());
  for (const auto at : order) {
    place[at] = static_cast<std::int32_t>(sorted_words.size());
    sorted_words.push_back(words_[at]);
  }
  for (auto* numbers : {&first, &second})
    for (auto& number : *numbers)
      number = place[static_cast<std::size_t>(number)];
  return sorted_words;
}

} // namespace mneme
