#include "tools/study/tensorboard_events.hpp"
#include <array>
#include <bit>
#include <fmt/format.h>
namespace mneme {
namespace {

// -- records (TensorFlow's TFRecord): length, its checksum, the data, their checksum ----------------------------------

constexpr std::array<std::uint32_t, 256> crc32c_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    auto value = i;
    for (int bit = 0; bit < 8; ++bit)
      value = (value >> 1U) ^ ((value & 1U) != 0U ? 0x82F63B78U : 0U); // uses Castagnoli's polynomial in reflected form
    table[i] = value;
  }
  return table;
}();

/// CRC-32C, rotated and offset as TFRecord requires.
std::uint32_t masked_checksum(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char byte : bytes)
    crc = crc32c_table[(crc ^ static_cast<unsigned char>(byte)) & 0xFFU] ^ (crc >> 8U);
  crc = ~crc;
  return std::rotr(crc, 15) + 0xA282EAD8U;
}

template <class Number>
void put_number(std::string& to, Number value) { // little-endian
  for (std::size_t i = 0; i < sizeof value; ++i)
    to += static_cast<char>(value >> (8U * i) & 0xFFU);
}

void put_record(std::string& to, const std::string& data) {
  std::string length;
  put_number(length, std::uint64_t{data.size()});
  to += length;
  put_number(to, masked_checksum(length));
  to += data;
  put_number(to, masked_checksum(data));
}

// -- messages (protocol buffers): the needed fields of Event, Summary and Summary.Value ------------------------------

enum wire_type : unsigned { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80U; value >>= 7U)
    to += static_cast<char>((value & 0x7FU) | 0x80U);
  to += static_cast<char>(value);
}
void put_member(std::string& to, unsigned member, wire_type type) { put_varint(to, member << 3U | type); }

void put_text(std::string& to, unsigned member, std::string_view text) {
  put_member(to, member, bytes);
  put_varint(to, text.size());
  to += text;
}

void put_scalar(std::string& summary, std::string_view tag, double value) {
  std::string scalar;
  put_text(scalar, 1, tag);
  put_member(scalar, 2, fixed32);
  put_number(scalar, std::bit_cast<std::uint32_t>(static_cast<float>(value)));
  put_text(summary, 1, scalar);
}

std::string event_at(double seconds, std::uint64_t step) {
  std::string event; // fields with value zero are omitted
  if (seconds != 0.0) {
    put_member(event, 1, fixed64);
    put_number(event, std::bit_cast<std::uint64_t>(seconds));
  }
  if (step != 0) {
    put_member(event, 2, varint);
    put_varint(event, step);
  }
  return event;
}

std::string summary_of(const evaluation_record& at) {
  std::string summary;
  put_scalar(summary, "accuracy", at.accuracy);
  for (std::size_t task = 0; task < at.accuracy_per_task.size(); ++task)
    put_scalar(summary, fmt::format("task_accuracy/{}", task + 1), at.accuracy_per_task[task]);
  put_scalar(summary, "loss", at.loss);
  if (at.perplexity)
    put_scalar(summary, "perplexity", *at.perplexity);
  if (at.training_loss)
    put_scalar(summary, "training_loss", *at.training_loss);
  for (const auto& [name, value] : at.training_loss_terms)
    put_scalar(summary, "training_loss_terms/" + name, value);
  if (at.forgetting)
    put_scalar(summary, "forgetting", *at.forgetting);
  if (at.epsilon)
    put_scalar(summary, "epsilon", *at.epsilon);
  put_scalar(summary, "clients/enrolled", static_cast<double>(at.clients_enrolled));
  put_scalar(summary, "clients/rounds", static_cast<double>(at.client_rounds));
  put_scalar(summary, "clients/late_uploads", static_cast<double>(at.late_uploads));
  put_scalar(summary, "clients/dropped", static_cast<double>(at.dropped));
  put_scalar(summary, "traffic/upload_bytes", static_cast<double>(at.upload_bytes));
  put_scalar(summary, "traffic/download_bytes", static_cast<double>(at.download_bytes));
  return summary;
}

} // namespace

std::string tensorboard_events(const std::vector<evaluation_record>& evaluations) {
  std::string file;
  auto version = event_at(0.0, 0);
  put_text(version, 3, "brain.Event:2");
  put_record(file, version);
  for (const auto& evaluation : evaluations) {
    auto event = event_at(in_seconds(evaluation.at), evaluation.round.value + 1);
    put_text(event, 5, summary_of(evaluation));
    put_record(file, event);
  }
  return file;
}

} // namespace mneme
