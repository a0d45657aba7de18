/// checkpoint_file: checkpoints on the disk, a self-contained file each, whole or recognisably not.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/base/diagnostic.hpp"
#include <filesystem>
namespace mneme {

/// Where each file starts and ends:
///   8 bytes "MNEMECKP", uint32 format, label, sections with their lengths in front, 16 bytes XXH3-128 of all before.
inline constexpr std::uint32_t checkpoint_format = 4;

/// Which run a checkpoint belongs to.
struct checkpoint_label {
  std::string scenario_digest{};
  std::string program{}; ///< Version of the program that wrote it: another one may come to other results.
  void persist(archive& state) { state.section("label")(scenario_digest)(program); }
};

/// A checkpoint that was read back: archives for loading, in the order in which they were written.
struct checkpoint {
  std::filesystem::path path{};
  std::vector<archive> sections{};
};

/// What is found in a folder of checkpoints.
struct checkpoint_search {
  std::optional<checkpoint> newest{}; ///< The newest whole one, if there is any.
  diagnostics broken{};               ///< Newer ones that are not whole, newest first.
};

/// Fails if the newest whole checkpoint is of another scenario, program or format, saying which. `accepts` may refuse
/// one, in words, that is whole but of no use, and then the search goes on with the one before.
[[nodiscard]] expected<checkpoint_search> find_checkpoint(const std::filesystem::path& folder,
                                                          const checkpoint_label& label,
                                                          const std::function<std::string(const checkpoint&)>& accepts);

/// The checkpoints of one run, of which the newest few are kept.
class checkpoint_folder {
public:
  /// Numbers go on after those that are there. @pre keep >= 1
  checkpoint_folder(std::filesystem::path path, checkpoint_label label, std::int64_t keep);
  /// Takes away what is newer than `last`, which was not whole when the run went on from there; all, if `last` is
  /// empty.
  void forget_after(const std::filesystem::path& last);
  /// Writes a file, then removes the oldest. What cannot be written throws std::system_error naming the file, and all
  /// that was there stays.
  void write(std::span<const archive> sections);

private:
  std::filesystem::path path_;
  checkpoint_label label_;
  std::int64_t keep_;
};

} // namespace mneme
