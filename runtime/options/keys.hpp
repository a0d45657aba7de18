/// key_table: declares the keys of a section, each with name, type, default, range and meaning.
#pragma once
#include "runtime/base/virtual_clock.hpp"
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
namespace mneme {

/// A size in bytes. Scenarios write it with a unit: "4 MiB".
struct byte_size {
  std::int64_t bytes = 0;
  auto operator<=>(const byte_size&) const = default;
};

/// Log-normal distribution of a value over the clients.
struct log_normal {
  double median = 1.0;
  double sigma = 0.0; ///< Standard deviation of the logarithm; 0: all clients have the median.
  bool operator==(const log_normal&) const = default;
};
/// A device property: one number for all clients, one number per client, or a distribution over clients.
using device_value = std::variant<double, std::vector<double>, log_normal>;

/// A group of clients with the same device profile, which is built in, in a file, or given as text.
struct profile_choice {
  std::string name{};
  std::filesystem::path file{};
  std::string text{}; ///< The profile as TOML text, if it is given as text.
  std::string link{}; ///< Built-in profile whose link replaces the link of this profile; empty: no replacement.
  double share = 1.0; ///< Weight of the group, relative to the other groups.
  bool operator==(const profile_choice&) const = default;
};

/// Range of a number. Both bounds are included, except `low` if `open_low` is true.
template <class Number>
struct range {
  Number low = std::numeric_limits<Number>::lowest();
  Number high = std::numeric_limits<Number>::max();
  bool open_low = false;
};

/// One word of a fixed set, or a list of names.
using word_or_names = std::variant<std::string, std::vector<std::string>>;

/// Pointer to the member that a key sets. For lists of integers or strings, a check may restrict the length.
using key_target =
    std::variant<bool*, std::int64_t*, double*, std::string*, std::filesystem::path*, virtual_duration*, byte_size*,
                 std::vector<std::int64_t>*, std::vector<double>*, std::vector<std::string>*, device_value*,
                 std::variant<std::string, std::vector<std::int64_t>>*, word_or_names*, std::vector<profile_choice>*>;

struct key {
  std::string name{};
  key_target target{};
  std::string meaning{};              ///< One sentence for `mneme help`.
  std::string default_text{};         ///< The default as TOML; set when the key is added to its table.
  bool omits_default = false;         ///< True: the scenario digest contains the key only if its value differs from the
                                      ///< default.
  range<double> bounds{};             ///< Bounds of a number, or of the elements of a number list.
  std::vector<std::string> choices{}; ///< For strings: allowed values; empty: any value.
  std::function<void(const std::string&)> chosen{}; ///< For strings bound to an enum: called with the chosen word.
  std::function<std::string()> current{};           ///< For strings bound to an enum: returns the current word.
};

/// The keys of one section, method or model. Each key is bound to a member, whose value at declaration is the default.
/// Members must outlive the table. Parsing, writing, help and error texts are derived from the table.
class key_table {
public:
  /// Each function adds a key of one type and binds it to `target`. @param meaning one sentence for `mneme help`
  void flag(std::string name, bool& target, std::string meaning);
  void integer(std::string name, std::int64_t& target, range<std::int64_t> bounds, std::string meaning);
  void number(std::string name, double& target, range<double> bounds, std::string meaning);
  void text(std::string name, std::string& target, std::string meaning);
  /// A path relative to the file that contains it. Parsing makes it absolute; "" stays "".
  void path(std::string name, std::filesystem::path& target, std::string meaning);
  void duration(std::string name, virtual_duration& target, std::string meaning);
  void size(std::string name, byte_size& target, std::string meaning);
  void integers(std::string name, std::vector<std::int64_t>& target, range<std::int64_t> bounds, std::string meaning);
  void numbers(std::string name, std::vector<double>& target, range<double> bounds, std::string meaning);
  void texts(std::string name, std::vector<std::string>& target, std::string meaning);
  void device(std::string name, device_value& target, range<double> bounds, std::string meaning);
  void profiles(std::string name, std::vector<profile_choice>& target, std::string meaning);
  /// Marks the last added key as newer than existing runs: scenarios that do not set it keep their digests.
  void omit_default_from_digest() { keys_.back().omits_default = true; }
  /// One word of `choices`, or a list of integers.
  void word_or_integers(std::string name, std::variant<std::string, std::vector<std::int64_t>>& target,
                        std::vector<std::string> choices, std::string meaning);
  /// One word of `choices`, or a list of names. Integers in the list are converted to decimal text.
  void word_or_name_list(std::string name, word_or_names& target, std::vector<std::string> choices,
                         std::string meaning);
  /// One word of a fixed set, stored as an enum.
  template <class Enum>
  void choice(std::string name, Enum& target, std::vector<std::pair<std::string, Enum>> words, std::string meaning) {
    key option{.name = std::move(name), .target = static_cast<std::string*>(nullptr), .meaning = std::move(meaning)};
    for (const auto& [word, value] : words)
      option.choices.push_back(word);
    option.chosen = [&target, words](const std::string& word) {
      for (const auto& [candidate, value] : words)
        if (candidate == word)
          target = value;
    };
    option.current = [&target, words] {
      for (const auto& [candidate, value] : words)
        if (value == target)
          return candidate;
      return std::string{};
    };
    add(std::move(option));
  }
  /// One word of an open set, such as the names of methods, models or data sets.
  void word(std::string name, std::string& target, std::vector<std::string> choices, std::string meaning);

  [[nodiscard]] const std::vector<key>& all() const noexcept { return keys_; }
  /// The key with this name. Returns null if there is none.
  [[nodiscard]] const key* find(std::string_view name) const noexcept;

private:
  void add(key option); // fills default_text from the target

  std::vector<key> keys_;
};

/// Current value of a key as TOML, as in the resolved scenario.
[[nodiscard]] std::string current_text(const key& option);
/// Describes the legal values of a key: "bool", "integer >= 0", "number in (0, 1]", "\"sgd\" | \"adam\"" or "duration,
/// as in \"30 s\"".
[[nodiscard]] std::string expected_text(const key& option);

} // namespace mneme
