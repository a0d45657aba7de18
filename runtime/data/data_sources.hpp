/// data_sources: registry of data sets. Each data set is one source file that registers itself in its last line.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/files.hpp"
#include "runtime/settings/scenario.hpp"
#include <functional>
#include <optional>
namespace mneme {

/// A data set that mneme can read or generate.
struct data_source {
  std::string name{};               ///< As in `data.name`.
  std::string summary{};            ///< One line for `mneme list datasets`: content, size, where its files come from.
  std::optional<file_set> files{};  ///< Files to read; nullopt for generated data.
  std::vector<std::string> parts{}; ///< Names of the data sets that it combines, whose files it reads.
  /// Reads the files below `roots` (searched in order), or generates the rows. `seed` is used by generated data only.
  std::function<expected<raw_data>(const data_section&, const std::vector<std::filesystem::path>& roots,
                                   std::uint64_t seed)>
      load{};
  /// Returns the same shapes and labels with zeros as values, without the cost of generating them; null for data from
  /// files.
  std::function<expected<raw_data>(const data_section&)> load_zeros{};
  /// Warnings about the user's files, without reading rows; null if the source has none.
  std::function<diagnostics(const data_section&, const std::vector<std::filesystem::path>& roots)> find_warnings{};
  bool from_seed = false;       ///< Generated data that depend on the seed.
  bool index_files = false;     ///< Images in idx files; data.transposed applies.
  bool picture_folders = false; ///< Images of any size, resized to data.side.
  bool holds_tokens = false;    ///< Rows are tokens instead of pixels.
  bool has_domains = false;     ///< Each row has a domain, for tasks.transform = "domains".
  bool is_own = false;          ///< User data at data.file or data.root.
  bool own_file = false;        ///< User data at data.file.
  std::int64_t classes = 0;     ///< Number of classes if a class order is published for the data set, else 0.
};

/// Registers a source before main(): `const source_registration line{{.name = ...}};`
struct source_registration {
  explicit source_registration(data_source source);
};
/// Sorted by name.
[[nodiscard]] std::vector<data_source> data_sources();
/// Returns a source with an empty name if there is none.
[[nodiscard]] data_source data_source_named(const std::string& name);

/// `data.root` alone if given, else the entries of $MNEME_DATA, then system folders.
[[nodiscard]] std::vector<std::filesystem::path> data_roots(const data_section& data);

/// The folders in which load_data() would find the files of `source`, without reading them; empty for generated data.
/// Fails with the diagnostic of the missing files.
[[nodiscard]] expected<std::vector<std::filesystem::path>> folders_of(const data_source& source,
                                                                      const data_section& data);

/// Part of user data that the scenario digest contains: file content, or names and sizes of images; "" for other data.
[[nodiscard]] std::string own_content(const data_section& data);

/// Values of generated rows.
enum class row_values : std::uint8_t {
  drawn,
  zeros ///< For callers that read only labels, shapes and counts. Rows from files are read as usual.
};

/// Loads `data.name` and applies train_rows and test_rows, then train_per_class and test_per_class. A missing,
/// truncated, oversized or corrupt file is a diagnostic with the file name and a remedy.
[[nodiscard]] expected<raw_data> load_data(const data_section& data, std::uint64_t seed,
                                           row_values values = row_values::drawn);

/// Warnings about files that load_data() can read: unusual names of parts, and files that are ignored.
[[nodiscard]] diagnostics data_warnings(const data_section& data);

} // namespace mneme
