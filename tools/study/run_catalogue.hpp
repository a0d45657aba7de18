/// run_catalogue: index of the run directories below a folder, in a file that can be rebuilt from them.
#pragma once
#include "tools/study/database.hpp"
#include "tools/study/stored_run.hpp"
#include <memory>
namespace mneme {

/// Condition such as "rounds.cohort=5", "final_accuracy>=70" or "status!=done". Numbers are compared as numbers, words
/// as words.
struct run_filter {
  std::string name{}, comparison{}, value{};
  std::string other_name{}; ///< Alternative to `name`, such as the current name of a renamed key; empty: none.
};
/// Parses a filter. Fails if the text is not a name, a comparison and a value.
[[nodiscard]] expected<run_filter> parse_filter(const std::string& text);

class run_catalogue {
public:
  static constexpr const char* file_name = "catalogue.sqlite";

  /// Opens FOLDER/catalogue.sqlite and updates it: changed run directories are read again, removed ones deleted. A
  /// damaged file, or one of another version, is rebuilt. If the file cannot be written, the index is in memory.
  /// A damaged run directory has the status "damaged" and an error.
  explicit run_catalogue(std::filesystem::path folder);

  /// Errors of the catalogue file, if it was damaged.
  [[nodiscard]] const diagnostics& damage() const noexcept { return damage_; }
  /// Returns the runs that satisfy all filters, sorted by folder. If a run does not have the name of a filter, it
  /// satisfies the filter only if its operator is "!=".
  [[nodiscard]] std::vector<stored_run> find(const std::vector<run_filter>& filters) const;
  /// Returns all names that filters can use and that some run has.
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
