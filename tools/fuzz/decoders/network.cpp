#include "actors/nodes/node_messages.hpp"
#include "actors/nodes/tensor_caches.hpp"
#include "runtime/federation/wave_serialization.hpp"
#include "runtime/transport/frames.hpp"
#include "tools/fuzz/decoders/decoder.hpp"
#include <algorithm>
namespace mneme::fuzz {
namespace {

constexpr std::size_t message_bytes_max = std::size_t{1} << 20;

archive::buffer buffer_of(bytes in) {
  const auto all = std::as_bytes(in);
  return std::make_shared<const std::vector<std::byte>>(all.begin(), all.end());
}

/// Feeds a stream to the reader as a connection does: first as much as fits into the buffer of a message, then the
/// rest.
void feed(frame_reader& reader, std::span<const std::byte> stream) {
  const auto area = reader.write_area();
  const auto placed = std::min(area.size(), stream.size());
  std::copy_n(stream.begin(), placed, area.begin());
  reader.mark_written(placed);
  reader.feed(stream.subspan(placed));
}

/// Reads frames from a stream that arrives in pieces. The first byte determines the length of the pieces.
void read_frames(bytes in) {
  if (in.empty())
    return;
  const std::size_t piece = 1 + in.front();
  frame_reader reader(message_bytes_max);
  frame_writer writer;
  try {
    const auto stream = std::as_bytes(in.subspan(1));
    for (std::size_t first = 0; first < stream.size(); first += piece) {
      feed(reader, stream.subspan(first, std::min(piece, stream.size() - first)));
      for (const auto& message : reader.take_messages())
        reader.consumed(message->size());
      writer.acknowledged(reader.take_acknowledged());
      if (const auto credit = reader.take_credit(); credit > 0)
        writer.add_credit(credit);
    }
  } catch (const protocol_error&) {
  }
}

template <class Content>
void read_as(archive& content) {
  Content in;
  content(in);
  content.expect_end();
}

/// Reads any message by its kind, as run and node do.
void read_message(bytes in) {
  const auto message = buffer_of(in);
  try {
    auto content = reader_of(message);
    auto kind = node_message::greeting;
    content(kind);
    node_tensor_cache of_node;
    run_tensor_cache of_run(std::size_t{1} << 16);
    switch (kind) {
    case node_message::greeting:
      return read_as<node_hello>(content);
    case node_message::refusal:
      return read_as<node_rejection>(content);
    case node_message::offer:
      return read_as<run_offer>(content);
    case node_message::file_request:
      return read_as<file_request>(content);
    case node_message::file:
      return read_as<file_content>(content);
    case node_message::ready:
      return read_as<node_ready>(content);
    case node_message::begin:
      return read_as<node_layout>(content);
    case node_message::start: {
      start_rounds wave;
      std::vector<digest128> forgotten;
      serialize_wave(content, wave, of_node);
      content(forgotten);
      of_node.forget(forgotten);
      return content.expect_end();
    }
    case node_message::release: {
      release wanted;
      serialize_wave(content, wanted);
      return content.expect_end();
    }
    case node_message::abandon: {
      abandon rounds;
      serialize_wave(content, rounds);
      return content.expect_end();
    }
    case node_message::report: {
      node_counters figures;
      wave_report report;
      content(figures);
      of_run.acknowledge(figures.messages_handled);
      serialize_wave(content, report, of_run);
      return content.expect_end();
    }
    case node_message::leaving: {
      node_leave leaves;
      content(leaves);
      return content.expect_end();
    }
    case node_message::end: {
      run_end ended;
      content(ended);
      return content.expect_end();
    }
    case node_message::interrupt:
      return;
    }
  } catch (const archive_error&) {
  }
}

} // namespace

std::vector<decoder> network_decoders() {
  return {{"network", "frames", read_frames}, {"network", "messages", read_message}};
}

} // namespace mneme::fuzz
