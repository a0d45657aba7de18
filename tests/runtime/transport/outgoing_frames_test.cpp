#include "runtime/transport/outgoing_frames.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

std::vector<std::byte> bytes_of(std::size_t count) {
  std::vector<std::byte> made(count);
  for (std::size_t i = 0; i < count; ++i)
    made[i] = static_cast<std::byte>(i % 251);
  return made;
}

/// A header, a long part of a message, and another header.
struct framed_message {
  std::vector<std::byte> header = bytes_of(8), blob = bytes_of(5000);
  std::shared_ptr<const archive> message = std::make_shared<const archive>();
  outgoing_frames out;
  explicit framed_message(bool copies) : out(copies) {
    out.append(header);
    out.append(blob, message);
    out.append(header);
  }
};

} // namespace

TEST_CASE("long pieces of messages are sent in place, short ones are copied with their headers") {
  const auto header = bytes_of(8), piece = bytes_of(100), blob = bytes_of(5000);
  const auto message = std::make_shared<const archive>();
  outgoing_frames out(false);
  out.append(header);
  out.append(piece, message);
  out.append(blob, message);
  out.append(header);
  CHECK(message.use_count() == 2);
  CHECK(out.left() == 8 + 100 + 5000 + 8);
  const auto pieces = out.pieces();
  REQUIRE(pieces.size() == 3);
  CHECK(pieces[0].size() == 108);
  CHECK(pieces[1].data() == blob.data());
  CHECK(pieces[1].size() == 5000);
  CHECK(pieces[2].size() == 8);
}

TEST_CASE("sent bytes are not sent again, and a fully sent message is released") {
  framed_message sent(false);
  auto& [header, blob, message, out] = sent;
  out.advance(1008);
  REQUIRE(out.pieces().size() == 2);
  CHECK(out.pieces()[0].data() == blob.data() + 1000);
  CHECK(out.pieces()[0].size() == 4000);
  CHECK(message.use_count() == 2);
  out.advance(4008);
  CHECK(out.left() == 0);
  CHECK(out.pieces().empty());
  CHECK(message.use_count() == 1);
  out.append(header);
  CHECK(out.pieces()[0].size() == 8);
}

TEST_CASE("encrypted bytes form a single piece") {
  framed_message sent(true);
  auto& [header, blob, message, out] = sent;
  REQUIRE(out.pieces().size() == 1);
  CHECK(out.pieces()[0].size() == 5016);
  CHECK(out.pieces()[0].data() != blob.data());
  CHECK(message.use_count() == 1);
}

TEST_CASE("of too many pieces, the first ones are sent first") {
  const auto header = bytes_of(8), blob = bytes_of(600);
  const auto message = std::make_shared<const archive>();
  outgoing_frames out(false);
  for (std::size_t i = 0; i < outgoing_frames::pieces_max; ++i) {
    out.append(header);
    out.append(blob, message);
  }
  CHECK(out.pieces().size() == outgoing_frames::pieces_max);
  out.advance(608 * (outgoing_frames::pieces_max / 2));
  CHECK(out.pieces().size() == outgoing_frames::pieces_max);
  out.advance(608);
  CHECK(out.pieces().size() == outgoing_frames::pieces_max - 2);
}
