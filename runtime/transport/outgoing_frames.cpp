#include "runtime/transport/outgoing_frames.hpp"
#include <algorithm>
namespace mneme {
namespace {

/// Pieces of messages below this size are copied, because system calls take time for every piece.
constexpr std::size_t copied_bytes_max = 512;

} // namespace

void outgoing_frames::append(std::span<const std::byte> bytes) {
  const bool continues = !pieces_.empty() && !pieces_.back().at;
  if (continues)
    pieces_.back().count += bytes.size();
  else
    pieces_.push_back({.offset = own_.size(), .count = bytes.size()});
  own_.insert(own_.end(), bytes.begin(), bytes.end());
  left_ += bytes.size();
}

void outgoing_frames::append(std::span<const std::byte> bytes, const std::shared_ptr<const archive>& message) {
  if (copies_ || bytes.size() <= copied_bytes_max)
    return append(bytes);
  pieces_.push_back({.at = bytes.data(), .count = bytes.size()});
  left_ += bytes.size();
  if (messages_.empty() || messages_.back() != message)
    messages_.push_back(message);
}

std::span<const std::span<const std::byte>> outgoing_frames::pieces() {
  next_.clear();
  for (auto i = first_; i < std::min(pieces_.size(), first_ + pieces_max); ++i)
    next_.emplace_back((pieces_[i].at ? pieces_[i].at : own_.data()) + pieces_[i].offset, pieces_[i].count);
  return next_;
}

void outgoing_frames::advance(std::size_t count) {
  left_ -= count;
  while (count > 0) {
    auto& piece = pieces_[first_];
    const auto used = std::min(count, piece.count);
    piece.offset += used;
    piece.count -= used;
    count -= used;
    if (piece.count == 0)
      ++first_;
  }
  if (left_ > 0)
    return;
  own_.clear();
  pieces_.clear();
  messages_.clear();
  first_ = 0;
}

} // namespace mneme
