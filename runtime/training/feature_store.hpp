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

/// Thread-safe. A row's features depend neither on the rows beside it nor on who asked first: what is remembered of
/// nets whose bits depend on the number of rows is computed row by row, and on a device in blocks of one size. With
/// a folder, features of earlier runs are read from it and save() leaves them there: a sweep over what is made of
/// features runs the net once.
class feature_store {
public:
  /// @param folder "": features live in memory only
  explicit feature_store(std::filesystem::path folder = {}) : folder_(std::move(folder)) {}

  /// Features of one data set under one net with one set of weights.
  class table {
  public:
    /// Which positions of `rows` are not known yet.
    [[nodiscard]] std::vector<std::int64_t> missing(std::span<const std::int64_t> rows) const;
    /// Remembers features [n, D] float32 of `rows`.
    void put(std::span<const std::int64_t> rows, const at::Tensor& features);
    /// Copies the features of `rows` into out [n, D] float32 on the host. @pre none is missing
    void copy_to(at::Tensor& out, std::span<const std::int64_t> rows) const;

  private:
    friend class feature_store;
    mutable std::mutex guard_;
    at::Tensor features_{};   // [rows of all transforms, D] float32
    std::vector<char> known_; // by row
    std::string file_{};      // of the folder
    bool changed_ = false;
    std::shared_ptr<const dataset> source_{}; // keeps the address that names the table
  };
  /// The table of these three; made, and read from the folder, when first asked for. A file that cannot be used is
  /// computed anew and replaced.
  [[nodiscard]] table& of(const std::shared_ptr<const dataset>& source, const model& net, const tensors_ref& weights);
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }
  /// Notes files of the folder that are not as they were written, and hence are made again.
  void note_damage(const diagnostics& damage);
  /// All that was noted so far.
  [[nodiscard]] diagnostics damaged() const;
  /// Writes every table with new rows to the folder. Throws std::system_error naming the file.
  void save();

private:
  digest128 weights_digest(const tensors_ref& weights);
  void open(table& opened, const dataset& source, const std::string& net, const digest128& weights);
  /// What is wrong with the file, if anything is.
  [[nodiscard]] static diagnostics read(table& into);

  std::filesystem::path folder_;
  std::mutex guard_;
  mutable std::mutex damage_guard_;
  diagnostics damaged_{};
  // Looked up, in no order that matters.
  std::map<std::tuple<const dataset*, std::string, digest128>, table> tables_;
  std::map<const tensor_map*, std::pair<tensors_ref, digest128>> digests_;
};

/// The parts of a data set that a net reads: pixels, transforms and normalisation, not labels.
[[nodiscard]] digest128 content_of(const dataset& source);

} // namespace mneme
