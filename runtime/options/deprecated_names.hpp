/// deprecated_names: the alias table of renamed scenario keys, words and command-line options.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>
namespace mneme {

/// A renamed word of a key that accepts a fixed set of words.
struct renamed_word {
  std::string_view name{}, old_name{};
};

/// A key that was renamed, or some of whose words were renamed. Scenarios may use the old spelling for two releases.
/// The scenario digest always hashes the old spelling, so that a rename changes no digest.
struct renamed_key {
  std::string_view section{}, name{};
  std::string_view old_name{};             ///< Equal to `name` if only words were renamed.
  std::vector<std::string_view> methods{}; ///< The methods that declare the key; empty: a key of all scenarios.
  std::vector<renamed_word> words{};

  [[nodiscard]] bool is_read_by(std::string_view method) const;
  /// The new spelling of a word, or the word itself if it was not renamed.
  [[nodiscard]] std::string_view new_word(std::string_view word) const;
  [[nodiscard]] std::string_view old_word(std::string_view word) const;
};

/// A renamed option of a command; names include the leading dashes.
struct renamed_option {
  std::string_view command{}, name{}, old_name{};
};

[[nodiscard]] std::span<const renamed_key> renamed_keys();
[[nodiscard]] std::span<const renamed_option> renamed_options();

/// The entry of the key whose new name is `name`. Null if the key was not renamed. @param method value of strategy.name
[[nodiscard]] const renamed_key* find_renamed(std::string_view section, std::string_view name, std::string_view method);

/// The entry whose old full name is `name` ("tasks.staying_share"). Null if there is none.
[[nodiscard]] const renamed_key* entry_of_old_name(std::string_view name, std::string_view method);

/// The new full name of a key with this old name, of any method. Returns `name` if there is none.
[[nodiscard]] std::string current_name(std::string_view name);

/// "tasks.keep_task_share"
[[nodiscard]] std::string full_new_name(const renamed_key& entry);
[[nodiscard]] std::string full_old_name(const renamed_key& entry);

/// "worker.node_silence is deprecated; use worker.node_timeout"
[[nodiscard]] std::string deprecation_text(std::string_view old_name, std::string_view name);

} // namespace mneme
