/// checkpoint_file: checkpoints on disk, one self-contained file each; an incomplete file is detected.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/base/diagnostic.hpp"
#include <filesystem>
namespace mneme {

/// File format: 8 bytes "MNEMECKP", uint32 format, label, sections with their lengths before them, and 16 bytes
/// XXH3-128 of everything before.
inline constexpr std::uint32_t checkpoint_format = 4;

/// Run to which a checkpoint belongs.
struct checkpoint_label {
  std::string scenario_digest{};
  std::string program{}; ///< Version of the program that wrote it; another version could compute other results.
  void persist(archive& state) { state.section("label")(scenario_digest)(program); }
};

/// A loaded checkpoint: archives in the order in which they were written.
struct checkpoint {
  std::filesystem::path path{};
  std::vector<archive> sections{};
};

/// Result of find_checkpoint().
struct checkpoint_search {
  std::optional<checkpoint> newest{}; ///< The newest complete checkpoint, if any.
  diagnostics broken{};               ///< Newer incomplete ones, newest first.
};

/// Finds the newest complete checkpoint. Fails if it belongs to another scenario, program or format. `accepts` may
/// reject a complete checkpoint with a message; then the search continues with the previous one.
[[nodiscard]] expected<checkpoint_search> find_checkpoint(const std::filesystem::path& folder,
                                                          const checkpoint_label& label,
                                                          const std::function<std::string(const checkpoint&)>& accepts);

/// Checkpoints of one run; keeps the newest few.
class checkpoint_folder {
public:
  /// Continues the numbering of existing files. @pre keep >= 1
  checkpoint_folder(std::filesystem::path path, checkpoint_label label, std::int64_t keep);
  /// Deletes checkpoints newer than `last`, from which the run has resumed; deletes all if `last` is empty.
  void forget_after(const std::filesystem::path& last);
  /// Writes a file, then deletes the oldest. On failure throws std::system_error with the file name; existing files
  /// stay.
  void write(std::span<const archive> sections);

private:
  std::filesystem::path path_;
  checkpoint_label label_;
  std::int64_t keep_;
};

} // namespace mneme
