/// feature_store: features of frozen nets, computed once per row and shared by all workers of a run.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/models/model.hpp"
#include <filesystem>
#include <map>
#include <mutex>
#include <span>
namespace mneme {

/// Thread-safe. A row's cached features depend neither on other rows nor on the order of requests. If a net's bits
/// depend on the number of rows, features are computed row by row on a CPU and in full blocks on a device. With a
/// folder, features of earlier runs are read from the folder and save() adds new ones, so a sweep runs the frozen net
/// once per row.
class feature_store {
public:
  /// @param folder "": features are kept in memory only
  explicit feature_store(std::filesystem::path folder = {}) : folder_(std::move(folder)) {}

  /// Features of one data set under one net with one set of weights.
  class table {
  public:
    /// Returns the entries of `rows` whose features are not cached.
    [[nodiscard]] std::vector<std::int64_t> missing(std::span<const std::int64_t> rows) const;
    /// Stores the features [n, D] float32 of `rows`.
    void put(std::span<const std::int64_t> rows, const at::Tensor& features);
    /// Copies the features of `rows` to out [n, D] float32 on the host. @pre missing(rows) is empty
    void copy_to(at::Tensor& out, std::span<const std::int64_t> rows) const;

  private:
    friend class feature_store;
    mutable std::mutex guard_;
    at::Tensor features_{};   // [rows of all transforms, D] float32
    std::vector<char> known_; // indexed by row; 1 if the features are stored
    std::string file_{};      // name of the table's file in the folder; empty without a folder
    bool changed_ = false;
    std::shared_ptr<const dataset> source_{}; // keeps the data set alive, whose address is part of the table's key
  };
  /// Returns the table for a data set, net and weights. The first call creates it and reads its file, if there is one.
  /// A damaged file is reported, and its features are computed again.
  [[nodiscard]] table& of(const std::shared_ptr<const dataset>& source, const model& net, const tensors_ref& weights);
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }
  /// Records damaged files of the folder; their features are computed again.
  void record_damage(const diagnostics& damage);
  /// All damage recorded so far.
  [[nodiscard]] diagnostics damaged() const;
  /// Writes every table with new rows to the folder. Throws std::system_error with the file's name.
  void save();

private:
  digest128 weights_digest(const tensors_ref& weights);
  void open(table& opened, const dataset& source, const std::string& net, const digest128& weights);
  /// Reads the table's file. Returns the errors in the file; empty on success.
  [[nodiscard]] static diagnostics read(table& into);

  std::filesystem::path folder_;
  std::mutex guard_;
  mutable std::mutex damage_guard_;
  diagnostics damaged_{};
  // The order of entries does not matter: the maps are only used for lookups, and save() writes one file per table.
  std::map<std::tuple<const dataset*, std::string, digest128>, table> tables_;
  std::map<const tensor_map*, std::pair<tensors_ref, digest128>> digests_;
};

/// Digest of the parts of a data set that a net reads: pixels, transforms and normalization, but not labels.
[[nodiscard]] digest128 content_of(const dataset& source);

} // namespace mneme
