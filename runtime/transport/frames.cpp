#include "runtime/transport/frames.hpp"
#include "runtime/base/huge_pages.hpp"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
namespace mneme {
namespace {

enum class frame_kind : std::uint8_t { begin = 1, part = 2, heartbeat = 3, credit = 4 };

constexpr std::array<std::uint8_t, 6> magic{'m', 'n', 'e', 'm', 'e', '\n'};

/// Limit of the address space reserved for an announced message. Pages are allocated as bytes arrive.
constexpr std::size_t reserved_bytes_max = std::size_t{256} << 20;

template <class T>
void append(outgoing_frames& out, const T& value) {
  out.append(std::as_bytes(std::span(&value, 1)));
}

void append_header(outgoing_frames& out, frame_kind kind, std::uint32_t length) {
  append(out, length);
  append(out, std::array<std::uint8_t, 4>{static_cast<std::uint8_t>(kind)});
}

void append_number(outgoing_frames& out, frame_kind kind, std::uint64_t number) {
  append_header(out, kind, sizeof number);
  append(out, number);
}

} // namespace

// -- reading ----------------------------------------------------------------------------------------------------------

void frame_reader::feed(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    std::size_t used = 0;
    if (!has_begun())
      used = read_preamble(bytes);
    else if (header_read_ < header_.size())
      used = read_header(bytes);
    else
      used = read_content(bytes);
    bytes = bytes.subspan(used);
  }
}

std::size_t frame_reader::read_preamble(std::span<const std::byte> bytes) {
  const auto used = std::min(bytes.size(), preamble_bytes - preamble_read_);
  std::memcpy(header_.data() + preamble_read_, bytes.data(), used);
  preamble_read_ += used;
  const auto known = std::min(preamble_read_, magic.size());
  if (std::memcmp(header_.data(), magic.data(), known) != 0)
    throw incompatible_peer("does not speak mneme's protocol");
  std::uint16_t version = 0;
  if (has_begun())
    std::memcpy(&version, header_.data() + magic.size(), sizeof version);
  if (has_begun() && version != protocol_version)
    throw incompatible_peer(fmt::format("speaks version {} of the protocol; expected {}", version, protocol_version));
  return used;
}

std::size_t frame_reader::read_header(std::span<const std::byte> bytes) {
  const auto used = std::min(bytes.size(), header_.size() - header_read_);
  std::memcpy(header_.data() + header_read_, bytes.data(), used);
  header_read_ += used;
  if (header_read_ < header_.size())
    return used;
  std::memcpy(&length_, header_.data(), sizeof length_);
  content_read_ = 0;
  check_header();
  if (length_ == 0)
    end_frame();
  else if (static_cast<frame_kind>(header_[4]) == frame_kind::part)
    coming_.resize(coming_.size() + length_);
  return used;
}

void frame_reader::check_header() const {
  const auto kind = static_cast<frame_kind>(header_[4]);
  const bool zeros = std::all_of(header_.begin() + 5, header_.end(), [](std::byte b) { return b == std::byte{0}; });
  bool fits = false;
  if (kind == frame_kind::begin)
    fits = length_ == number_.size() && !expected_;
  else if (kind == frame_kind::part)
    fits = expected_ && length_ > 0 && length_ <= frame_bytes_max && length_ <= *expected_ - coming_.size();
  else if (kind == frame_kind::heartbeat)
    fits = length_ == 0;
  else if (kind == frame_kind::credit)
    fits = length_ == number_.size();
  if (!fits || !zeros)
    throw protocol_error(fmt::format("sends a frame of kind {} with {} bytes, which is not valid in this state",
                                     static_cast<int>(kind), length_));
}

std::size_t frame_reader::read_content(std::span<const std::byte> bytes) {
  const auto used = std::min<std::size_t>(bytes.size(), length_ - content_read_);
  const auto into = write_area();
  std::memcpy(into.empty() ? number_.data() + content_read_ : into.data(), bytes.data(), used);
  mark_written(used);
  return used;
}

std::span<std::byte> frame_reader::write_area() noexcept {
  const bool is_part = header_read_ == header_.size() && static_cast<frame_kind>(header_[4]) == frame_kind::part;
  return is_part ? std::span(coming_).last(length_ - content_read_) : std::span<std::byte>();
}

void frame_reader::mark_written(std::size_t count) {
  if (count == 0) // the frame may have no content
    return;
  content_read_ += static_cast<std::uint32_t>(count);
  if (content_read_ == length_)
    end_frame();
}

void frame_reader::end_frame() {
  header_read_ = 0;
  std::uint64_t number = 0;
  std::memcpy(&number, number_.data(), sizeof number);
  switch (static_cast<frame_kind>(header_[4])) {
  case frame_kind::begin:
    if (number > message_bytes_max_)
      throw protocol_error(
          fmt::format("announces a message of {} bytes; at most {} are accepted", number, message_bytes_max_));
    expected_ = number;
    coming_.reserve(std::min(static_cast<std::size_t>(number), reserved_bytes_max));
    prefer_huge_pages(coming_.data(), coming_.capacity());
    break;
  case frame_kind::part:
    owed_ += length_;
    break;
  case frame_kind::credit:
    confirmed_ += number;
    break;
  case frame_kind::heartbeat:
    break;
  }
  if (expected_ && coming_.size() == *expected_) {
    unconsumed_ += coming_.size();
    messages_.push_back(std::make_shared<const std::vector<std::byte>>(std::exchange(coming_, {})));
    expected_.reset();
  }
}

void frame_reader::consumed(std::size_t bytes) noexcept { unconsumed_ -= std::min(bytes, unconsumed_); }

std::uint64_t frame_reader::take_credit() noexcept {
  return owed_ >= credit_bytes_min && unconsumed_ <= window_bytes ? std::exchange(owed_, 0) : 0;
}

// -- writing ----------------------------------------------------------------------------------------------------------

void frame_writer::add(std::shared_ptr<const archive> message) {
  auto& added = queue_.emplace_back();
  message->each_piece([&](std::span<const std::byte> piece) {
    if (!piece.empty())
      added.pieces.push_back(piece);
  });
  added.left = message->size();
  waiting_bytes_ += added.left;
  added.message = std::move(message);
}

void frame_writer::acknowledged(std::uint64_t bytes) {
  if (bytes > unconfirmed_)
    throw protocol_error("acknowledges more bytes than were sent to it");
  unconfirmed_ -= bytes;
}

bool frame_writer::has_something() const noexcept {
  const bool may_send = !queue_.empty() && (!queue_.front().begun || unconfirmed_ < window_bytes);
  return preamble_due_ || heartbeat_due_ || credit_due_ > 0 || may_send;
}

void frame_writer::write_to(outgoing_frames& out) {
  if (std::exchange(preamble_due_, false)) {
    append(out, magic);
    append(out, protocol_version);
  }
  if (const auto credit = std::exchange(credit_due_, 0); credit > 0)
    append_number(out, frame_kind::credit, credit);
  if (std::exchange(heartbeat_due_, false))
    append_header(out, frame_kind::heartbeat, 0);
  while (!queue_.empty() && out.left() < frame_bytes_max) {
    auto& next = queue_.front();
    if (!std::exchange(next.begun, true))
      append_number(out, frame_kind::begin, next.left);
    if (next.left > 0 && unconfirmed_ >= window_bytes)
      return;
    if (next.left > 0)
      write_part(out);
    if (next.left == 0)
      queue_.pop_front();
  }
}

void frame_writer::write_part(outgoing_frames& out) {
  auto& next = queue_.front();
  auto count = std::min({next.left, frame_bytes_max, static_cast<std::size_t>(window_bytes - unconfirmed_)});
  append_header(out, frame_kind::part, static_cast<std::uint32_t>(count));
  next.left -= count;
  waiting_bytes_ -= count;
  unconfirmed_ += count;
  bytes_written_ += count;
  while (count > 0) {
    const auto piece = next.pieces[next.piece].subspan(next.offset);
    const auto used = std::min(count, piece.size());
    out.append(piece.first(used), next.message);
    count -= used;
    next.offset += used;
    if (used == piece.size()) {
      ++next.piece;
      next.offset = 0;
    }
  }
}

} // namespace mneme
