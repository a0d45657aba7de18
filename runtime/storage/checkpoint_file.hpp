/// checkpoint_file: checkpoints on disk, one self-contained file each. Incomplete files are detected.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/base/diagnostic.hpp"
#include <filesystem>
namespace mneme {

/// File format: the 8 bytes "MNEMECKP", the format number (uint32), the label, the sections, each preceded by its
/// length, and the XXH3-128 digest (16 bytes) of everything before it.
inline constexpr std::uint32_t checkpoint_format = 4;

/// Identifies the run to which a checkpoint belongs.
struct checkpoint_label {
  std::string scenario_digest{};
  std::string program{}; ///< Version of the writing program. Other versions may compute other results.
  void persist(archive& state) { state.section("label")(scenario_digest)(program); }
};

/// A loaded checkpoint: its archives in the order in which they were written.
struct checkpoint {
  std::filesystem::path path{};
  std::vector<archive> sections{};
};

/// Result of find_checkpoint().
struct checkpoint_search {
  std::optional<checkpoint> newest{}; ///< The newest complete checkpoint, if any.
  diagnostics broken{};               ///< Errors of newer checkpoints, newest first.
};

/// Finds the newest complete checkpoint. Fails if it belongs to another scenario, program version or format. If
/// `accepts` returns an error text for it, the search continues with the previous one.
[[nodiscard]] expected<checkpoint_search> find_checkpoint(const std::filesystem::path& folder,
                                                          const checkpoint_label& label,
                                                          const std::function<std::string(const checkpoint&)>& accepts);

/// The checkpoint files of one run; old ones are deleted.
class checkpoint_folder {
public:
  /// Continues the numbering of existing files. @param keep number of files to keep @pre keep >= 1
  checkpoint_folder(std::filesystem::path path, checkpoint_label label, std::int64_t keep);
  /// Deletes all checkpoints that are newer than `last`, from which the run has resumed. Deletes all if `last` is
  /// empty.
  void forget_after(const std::filesystem::path& last);
  /// Writes a new checkpoint, then deletes the oldest ones. Throws std::system_error with the file name on failure;
  /// existing files then remain.
  void write(std::span<const archive> sections);

private:
  std::filesystem::path path_;
  checkpoint_label label_;
  std::int64_t keep_;
};

} // namespace mneme
