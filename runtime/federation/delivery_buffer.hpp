/// delivery_buffer: uploads that have arrived and wait to be handed to the server in bundles.
#pragma once
#include "runtime/federation/server_steps.hpp"
#include <optional>
namespace mneme {

class delivery_buffer {
public:
  /// A bundle is due at so many uploads, or at so many bytes, which are still in a cache.
  static constexpr std::size_t held_max = 32;
  static constexpr std::int64_t held_bytes_max = std::int64_t{1} << 19;
  /// The server has to fold what it was given before it is given more than this.
  static constexpr std::int64_t unfolded_bytes_max = std::int64_t{64} << 20;

  void add(delivery upload, std::int64_t bytes) {
    waiting_.push_back(std::move(upload));
    waiting_bytes_ += bytes;
  }
  [[nodiscard]] bool is_due() const noexcept { return waiting_.size() >= held_max || waiting_bytes_ >= held_bytes_max; }
  /// Takes all that wait; null if none do.
  [[nodiscard]] std::optional<deliveries> take() {
    if (waiting_.empty())
      return std::nullopt;
    deliveries bundle{.all = std::exchange(waiting_, {})};
    unfolded_bytes_ += std::exchange(waiting_bytes_, 0);
    if (unfolded_bytes_ >= unfolded_bytes_max) {
      bundle.tell_when_folded = true;
      unfolded_bytes_ = 0;
      ++folds_missing_;
    }
    return bundle;
  }
  /// The server has folded a bundle of which it was to tell.
  void folded() {
    MNEME_CHECK(folds_missing_ > 0);
    --folds_missing_;
  }
  /// Virtual time waits until the server has folded what it was given: what waits for it is memory too.
  [[nodiscard]] bool waits_for_server() const noexcept { return folds_missing_ > 0; }

private:
  std::vector<delivery> waiting_;
  std::int64_t waiting_bytes_ = 0;
  std::int64_t unfolded_bytes_ = 0; // handed over since the server last had to tell
  std::size_t folds_missing_ = 0;
};

} // namespace mneme
