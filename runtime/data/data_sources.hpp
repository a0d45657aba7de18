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
  std::string name{};               ///< Value of `data.name`.
  std::string summary{};            ///< One line for `mneme list datasets`: content, size and origin of the files.
  std::optional<file_set> files{};  ///< Files to read; nullopt for generated data.
  std::vector<std::string> parts{}; ///< Names of the data sets that this source combines.
  /// Reads the files below `roots`, which are searched in order, or generates the rows from `seed`.
  std::function<expected<raw_data>(const data_section&, const std::vector<std::filesystem::path>& roots,
                                   std::uint64_t seed)>
      load{};
  /// Returns zeros with the same shapes and the same labels, which is faster than generating rows. Null for data from
  /// files.
  std::function<expected<raw_data>(const data_section&)> load_zeros{};
  /// Returns warnings about the user's files without reading rows. Null if the source has none.
  std::function<diagnostics(const data_section&, const std::vector<std::filesystem::path>& roots)> find_warnings{};
  bool from_seed = false;     ///< True: rows are generated from the seed.
  bool index_files = false;   ///< Images are in idx files, so data.transposed applies.
  bool image_folders = false; ///< Images have various sizes and are resized to data.side.
  bool holds_tokens = false;  ///< Rows hold tokens instead of pixels.
  bool has_domains = false;   ///< Each row has a domain, for tasks.transform = "domains".
  bool is_own = false;        ///< Data of the user, at data.file or data.root.
  bool own_file = false;      ///< Data of the user, at data.file.
  std::int64_t classes = 0;   ///< Number of classes, if a class order is published for the data set; else 0.
};

/// Registers a source before main(): `const source_registration line{{.name = ...}};`
struct source_registration {
  explicit source_registration(data_source source);
};
/// All registered data sets, sorted by name.
[[nodiscard]] std::vector<data_source> data_sources();
/// The data set with this name. Returns a source with an empty name if there is none.
[[nodiscard]] data_source data_source_named(const std::string& name);

/// Folders to search: only `data.root` if it is set, else the entries of $MNEME_DATA, and then system folders.
[[nodiscard]] std::vector<std::filesystem::path> data_roots(const data_section& data);

/// The folders in which load_data() would find the files of `source`; empty for generated data. No file is read. Fails
/// like load_data() if files are missing.
[[nodiscard]] expected<std::vector<std::filesystem::path>> folders_of(const data_source& source,
                                                                      const data_section& data);

/// The part of user data that enters the scenario digest: file content, or names and sizes of images. Returns "" for
/// other data.
[[nodiscard]] std::string user_data_digest(const data_section& data);

/// Selects the values of generated rows.
enum class row_values : std::uint8_t {
  drawn,
  zeros ///< Zeros, for callers that read only labels, shapes and counts. Rows from files keep their values.
};

/// Loads `data.name`, then applies train_rows and test_rows, then train_per_class and test_per_class. For a missing,
/// truncated, oversized or corrupt file, the diagnostic names the file and a remedy.
[[nodiscard]] expected<raw_data> load_data(const data_section& data, std::uint64_t seed,
                                           row_values values = row_values::drawn);

/// Warnings about files that load_data() can read: unusual names of parts, and files that are ignored.
[[nodiscard]] diagnostics data_warnings(const data_section& data);

} // namespace mneme
