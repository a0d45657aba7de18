/// table_words: maps the labels or domains of a table to numbers.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>
namespace mneme {

/// The words of one column, numbered in the order in which they first appear.
class table_words {
public:
  /// @param noun "label" or "domain", for messages
  explicit table_words(const char* noun) : noun_(noun) {}

  /// The number of `word`; a new word gets the next number. @param line line number of the word
  std::int32_t number_of(std::string_view word, std::size_t line);
  [[nodiscard]] std::size_t size() const noexcept { return words_.size(); }

  /// Reports words that are probably errors: one number in two notations, and words for a missing value ("nan").
  /// @param path path of the table
  [[nodiscard]] diagnostics validate(const std::string& path) const;

  /// Returns the words in final order: by value if all are numbers, else by bytes. Replaces the numbers in `first` and
  /// `second` (from number_of()) by indices in this order.
  [[nodiscard]] std::vector<std::string> sorted(std::vector<std::int32_t>& first,
                                                std::vector<std::int32_t>& second) const;

private:
  const char* noun_;
  std::unordered_map<std::string, std::int32_t> numbers_; // only used for lookups, never iterated
  std::vector<std::string> words_;
  std::vector<std::size_t> lines_; // line number of each word's first occurrence
};

} // namespace mneme
