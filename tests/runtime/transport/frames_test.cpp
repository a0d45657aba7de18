#include "runtime/base/rng.hpp"
#include "runtime/transport/frames.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
using namespace mneme;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

using bytes = std::vector<std::byte>;

std::shared_ptr<const archive> message_of(std::vector<std::uint8_t> content) {
  auto made = std::make_shared<archive>();
  made->plain(content);
  return made;
}

/// All bytes that a writer can send now, in steps of at most `step` bytes.
bytes all_of(frame_writer& from, bool copies = false, std::size_t step = frame_bytes_max) {
  bytes all;
  outgoing_frames out(copies);
  while (from.has_something() || out.left() > 0) {
    if (out.left() == 0)
      from.write_to(out);
    std::size_t taken = 0;
    for (const auto& piece : out.pieces()) {
      const auto count = std::min(piece.size(), step - taken);
      all.insert(all.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
      taken += count;
    }
    out.advance(taken);
  }
  return all;
}

/// Preamble and header of a frame.
bytes begun_with(std::uint32_t length, std::uint8_t kind) {
  frame_writer writer;
  bytes out = all_of(writer);
  for (int i = 0; i < 4; ++i)
    out.push_back(static_cast<std::byte>(length >> (8 * i)));
  out.insert(out.end(), {static_cast<std::byte>(kind), std::byte{0}, std::byte{0}, std::byte{0}});
  return out;
}

} // namespace

TEST_CASE("messages arrive as sent, however the stream is split") {
  frame_writer writer;
  std::vector<std::vector<std::uint8_t>> sent;
  for (const std::size_t size : {1U, 100U, 1'000'000U, 3U}) {
    sent.emplace_back(size);
    for (std::size_t i = 0; i < size; ++i)
      sent.back()[i] = static_cast<std::uint8_t>(i * 7 + size);
    writer.add(message_of(sent.back()));
  }
  writer.add_heartbeat();
  const auto stream = all_of(writer);
  CHECK(writer.waiting_bytes() == 0);
  for (const std::size_t piece : {1U, 7U, 4096U, 10'000'000U}) {
    frame_reader reader(2'000'000);
    std::vector<archive::buffer> found;
    for (std::size_t first = 0; first < stream.size(); first += piece) {
      reader.feed(std::span(stream).subspan(first, std::min(piece, stream.size() - first)));
      for (auto& message : reader.take_messages())
        found.push_back(std::move(message));
    }
    REQUIRE(found.size() == sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      archive read(found[i], 0, found[i]->size());
      std::vector<std::uint8_t> content;
      read.plain(content);
      CHECK((content == sent[i]));
    }
  }
}

TEST_CASE("messages sent in pieces and as a whole are equal, for any split of the stream") {
  tensor_map tensors; // one is sent by reference, one is copied
  tensors.put("long", at::arange(200'000, at::kFloat));
  tensors.put("short", at::arange(3, at::kFloat));
  const auto streams = [&](bool copies, std::size_t step) {
    frame_writer writer;
    for (int i = 0; i < 3; ++i) {
      auto message = std::make_shared<archive>();
      (*message)(tensors);
      writer.add(std::move(message));
    }
    return all_of(writer, copies, step);
  };
  const auto whole = streams(true, frame_bytes_max);
  CHECK(whole.size() > 2'400'000);
  for (const std::size_t step : {5'000U, 77'777U, 1'000'000U})
    CHECK((streams(false, step) == whole));

  frame_reader reader(1'000'000); // reads into messages directly where possible
  std::vector<archive::buffer> messages;
  for (std::size_t at = 0; at < whole.size();) {
    const auto room = reader.write_area();
    const auto count = std::min({room.empty() ? 100 : room.size(), std::size_t{70'000}, whole.size() - at});
    if (room.empty()) {
      reader.feed(std::span(whole).subspan(at, count));
    } else {
      std::memcpy(room.data(), whole.data() + at, count);
      reader.mark_written(count);
    }
    at += count;
    for (auto& message : reader.take_messages())
      messages.push_back(std::move(message));
  }
  REQUIRE(messages.size() == 3);
  for (const auto& message : messages) {
    archive read(message, 0, message->size());
    tensor_map found;
    read(found);
    CHECK((at::equal(found.at("long"), tensors.at("long")) && at::equal(found.at("short"), tensors.at("short"))));
  }
}

TEST_CASE("a sender stops at the window and continues after acknowledgments") {
  frame_writer writer;
  writer.add(message_of(std::vector<std::uint8_t>(2 * window_bytes)));
  const auto first = all_of(writer);
  CHECK(writer.waiting_bytes() == window_bytes + 8); // preceded by the length of the vector
  CHECK_FALSE(writer.has_something());
  writer.acknowledged(1000);
  CHECK(all_of(writer).size() == 1000 + 8);
  CHECK_THROWS_MATCHES(writer.acknowledged(window_bytes + 1), protocol_error,
                       MessageMatches(ContainsSubstring("acknowledges more bytes than were sent to it")));
}

TEST_CASE("a receiver holds back credits until whole messages have been consumed") {
  frame_writer writer;
  writer.add(message_of(std::vector<std::uint8_t>(window_bytes + credit_bytes_min)));
  frame_reader reader(2 * window_bytes);
  reader.feed(all_of(writer));
  const auto credit = reader.take_credit(); // a partial message is acknowledged as it arrives
  CHECK(credit == window_bytes);
  writer.acknowledged(credit);
  reader.feed(all_of(writer));
  const auto messages = reader.take_messages();
  REQUIRE(messages.size() == 1);
  CHECK(reader.take_credit() == 0); // longer than the window, and complete
  reader.consumed(messages.front()->size());
  CHECK(reader.take_credit() == credit_bytes_min + 8);
}

TEST_CASE("credits are not sent for a few bytes") {
  frame_writer writer;
  frame_reader reader(2 * window_bytes);
  writer.add(message_of(std::vector<std::uint8_t>(credit_bytes_min - 9)));
  reader.feed(all_of(writer));
  CHECK(reader.take_credit() == 0);
  writer.add(message_of(std::vector<std::uint8_t>(1)));
  reader.feed(all_of(writer));
  CHECK(reader.take_credit() == credit_bytes_min - 9 + 8 + 9);
}

TEST_CASE("protocol violations are named and allocate no memory") {
  const auto complaint = [](const bytes& stream) {
    frame_reader reader(1000);
    try {
      reader.feed(stream);
    } catch (const protocol_error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const auto text = [](std::string_view words) {
    const auto* first = reinterpret_cast<const std::byte*>(words.data());
    return bytes(first, first + words.size());
  };
  CHECK(complaint(text("GET / HTTP/1.1\r\n\r\n")) == "does not speak mneme's protocol");
  CHECK_THAT(complaint(text("mneme\n\x09")), ContainsSubstring(""));
  CHECK(complaint(text(std::string_view("mneme\n\x09\0", 8))) == "speaks version 9 of the protocol; expected 3");
  CHECK_THAT(complaint(begun_with(0xFFFFFFFFU, 2)), ContainsSubstring("kind 2 with 4294967295 bytes"));
  CHECK_THAT(complaint(begun_with(8, 9)), ContainsSubstring("kind 9"));
  auto long_message = begun_with(8, 1);
  const std::uint64_t announced = (std::uint64_t{1} << 32U) - 1;
  long_message.resize(long_message.size() + 8);
  std::memcpy(long_message.data() + long_message.size() - 8, &announced, 8);
  CHECK(complaint(long_message) == "announces a message of 4294967295 bytes; at most 1000 are accepted");
}

TEST_CASE("random bytes only cause protocol errors") {
  rng_stream stream({.seed = 7, .purpose = first_method_purpose});
  frame_writer writer;
  writer.add(message_of(std::vector<std::uint8_t>(300)));
  writer.add_heartbeat();
  const auto good = all_of(writer);
  std::int64_t broken = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    auto stream_bytes = good;
    for (int change = 0; change < 3; ++change)
      stream_bytes[stream.below(stream_bytes.size())] = static_cast<std::byte>(stream.below(256));
    frame_reader reader(1000);
    try {
      reader.feed(stream_bytes);
      for (const auto& message : reader.take_messages())
        CHECK(message->size() <= 1000);
    } catch (const protocol_error&) {
      ++broken;
    }
  }
  CHECK(broken > 100);
}
