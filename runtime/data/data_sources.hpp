/// The catalog of data sets: each is one source file, registered by its last line.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/files.hpp"
#include "runtime/settings/scenario.hpp"
#include <functional>
#include <optional>
namespace mneme {

/// A data set mneme can read.
struct data_source {
  std::string name{};               ///< As in `data.name`.
  std::string summary{};            ///< One line for `mneme list datasets`: content, size, where its files come from.
  std::optional<file_set> files{};  ///< What it reads; none where rows are made.
  std::vector<std::string> parts{}; ///< Data sets that it is made of, whose files it reads.
  /// Reads the files below `roots` (searched in order), or makes the rows. `seed` is for made data only.
  std::function<expected<raw_data>(const data_section&, const std::vector<std::filesystem::path>& roots,
                                   std::uint64_t seed)>
      load{};
  /// The same rows and labels with zeros for their values, which take a while to draw; none: load() makes none.
  std::function<expected<raw_data>(const data_section&)> load_zeros{};
  /// Warnings about the user's files, without reading rows; null if the source has none.
  std::function<diagnostics(const data_section&, const std::vector<std::filesystem::path>& roots)> find_warnings{};
  bool from_seed = false;       ///< The rows are made, and others with every seed.
  bool index_files = false;     ///< Images in idx files, which data.transposed may turn.
  bool picture_folders = false; ///< Pictures in all sizes, which are brought to data.side.
  bool holds_tokens = false;    ///< Rows are tokens; else pixels.
  bool has_domains = false;     ///< Rows know their domain, for tasks.transform = "domains".
  bool is_own = false;          ///< Rows of the user's, where data.file, or else data.root, says.
  bool own_file = false;        ///< They lie where data.file says.
  std::int64_t classes = 0;     ///< How many, where an order of them is published for it; else 0.
};

/// Registers a source before main(): `const source_registration line{{.name = ...}};`
struct source_registration {
  explicit source_registration(data_source source);
};
/// Sorted by name.
[[nodiscard]] std::vector<data_source> data_sources();
/// One without a name if there is none.
[[nodiscard]] data_source data_source_named(const std::string& name);

/// `data.root` alone if given, else the entries of $MNEME_DATA, then system folders.
[[nodiscard]] std::vector<std::filesystem::path> data_roots(const data_section& data);

/// The folders where the files of `source` lie, as load_data() would find them, without reading them; none where rows
/// are made. Fails with the diagnostic of what is missing.
[[nodiscard]] expected<std::vector<std::filesystem::path>> folders_of(const data_source& source,
                                                                      const data_section& data);

/// What of own data is in the digest of a scenario: content of files, names and sizes of pictures; "" for other data.
[[nodiscard]] std::string own_content(const data_section& data);

/// What rows that are made from the seed hold.
enum class row_values : std::uint8_t {
  drawn,
  zeros ///< For who looks at labels, shapes and counts alone. Rows of files are read as ever.
};

/// Loads `data.name` and applies train_rows, test_rows, then train_per_class, test_per_class.
/// A missing, truncated, oversized or corrupt file is a diagnostic that names it and what to do.
[[nodiscard]] expected<raw_data> load_data(const data_section& data, std::uint64_t seed,
                                           row_values values = row_values::drawn);

/// Warnings about files that load_data() can read: parts with unusual names, and files that are left out.
[[nodiscard]] diagnostics data_warnings(const data_section& data);

} // namespace mneme
