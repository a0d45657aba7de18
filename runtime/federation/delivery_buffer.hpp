/// delivery_buffer: collects arrived uploads and sends them to the server in bundles.
#pragma once
#include "runtime/base/tuning.hpp"
#include "runtime/federation/party_steps.hpp"
#include <optional>
namespace mneme {

class delivery_buffer {
public:
  /// Adds an upload to the next bundle. @param bytes size of the upload
  void add(delivery upload, std::int64_t bytes) {
    waiting_.push_back(std::move(upload));
    waiting_bytes_ += bytes;
  }
  /// True if the buffered uploads fill a bundle.
  [[nodiscard]] bool is_due() const noexcept {
    return waiting_.size() >= tuning::bundled_uploads_max || waiting_bytes_ >= tuning::bundled_bytes_max;
  }
  /// Removes and returns all buffered uploads. Returns nullopt if there are none.
  [[nodiscard]] std::optional<deliveries> take() {
    if (waiting_.empty())
      return std::nullopt;
    deliveries bundle{.uploads = std::exchange(waiting_, {})};
    unfolded_bytes_ += std::exchange(waiting_bytes_, 0);
    if (unfolded_bytes_ >= tuning::unfolded_bytes_max) {
      bundle.ack_when_folded = true;
      unfolded_bytes_ = 0;
      ++folds_missing_;
    }
    return bundle;
  }
  /// Records the server's acknowledgement of a bundle.
  void on_uploads_folded() {
    MNEME_CHECK(folds_missing_ > 0);
    --folds_missing_;
  }
  /// True if virtual time must wait for the server, because uploads that are not folded yet take memory.
  [[nodiscard]] bool waits_for_server() const noexcept { return folds_missing_ > 0; }

private:
  std::vector<delivery> waiting_;
  std::int64_t waiting_bytes_ = 0;
  std::int64_t unfolded_bytes_ = 0; // bytes sent since the last bundle that requires an acknowledgement
  std::size_t folds_missing_ = 0;
};

} // namespace mneme
