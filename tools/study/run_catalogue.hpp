/// run_catalogue: an index of the run directories below a folder, in one file that can be made again from them.
#pragma once
#include "tools/study/database.hpp"
#include "tools/study/stored_run.hpp"
#include <memory>
namespace mneme {

/// "rounds.cohort=5", "final_accuracy>=70", "status!=done": numbers are compared as numbers, words as words.
struct run_filter {
  std::string name{}, comparison{}, value{};
};
/// Fails where the text is no NAME, comparison and VALUE.
[[nodiscard]] expected<run_filter> parsed_filter(const std::string& text);

class run_catalogue {
public:
  static constexpr const char* file_name = "catalogue.sqlite";

  /// Opens FOLDER/catalogue.sqlite and brings it up to date with the directories: what has changed is read again, what
  /// is gone is forgotten. A file that is not as it was written, or is of another version, is made anew; where the
  /// folder cannot be written, or another process holds the file, the index lives in memory. A run directory that is
  /// damaged has the status "damaged", and its error says what is wrong.
  explicit run_catalogue(std::filesystem::path folder);

  /// What was wrong with the file, if it was damaged.
  [[nodiscard]] const diagnostics& damage() const noexcept { return damage_; }
  /// The runs for which all filters hold, by folder. A name that a run does not have holds for "!=" alone.
  [[nodiscard]] std::vector<stored_run> find(const std::vector<run_filter>& filters) const;
  /// Every name that filters may use and some run has.
  [[nodiscard]] std::vector<std::string> names() const;

private:
  void open(const std::filesystem::path& file);
  void make_again(const std::filesystem::path& file);
  void refresh();
  void forget_run(std::int64_t id);
  void add(const std::filesystem::path& folder, const std::string& stamp);
  [[nodiscard]] stored_run loaded(std::int64_t run, const std::string& folder) const;

  std::filesystem::path folder_;
  std::unique_ptr<database> database_{};
  diagnostics damage_{};
};

} // namespace mneme
