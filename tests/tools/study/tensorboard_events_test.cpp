#include "tools/study/tensorboard_events.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

// Bytes written by TensorBoard 2.21:
//   from tensorboard.compat.proto.event_pb2 import Event
//   from tensorboard.summary.writer.record_writer import RecordWriter
//   RecordWriter(file).write(Event(wall_time=..., ...).SerializeToString())

namespace {

std::string hex_of(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes)
    for (const unsigned half : {static_cast<unsigned char>(byte) / 16U, static_cast<unsigned char>(byte) % 16U})
      text += "0123456789abcdef"[half];
  return text;
}

} // namespace

TEST_CASE("a file without evaluations has only the version record") {
  CHECK(hex_of(tensorboard_events({})) == "0f000000000000006d532b091a0d627261696e2e4576656e743a32fc985129");
}

TEST_CASE("an evaluation is a record with a scalar for each metric") {
  const evaluation_record evaluation{.round = {300},
                                     .at = virtual_time{std::chrono::milliseconds(2500)},
                                     .accuracy = 62.5,
                                     .accuracy_per_task = {75.0, 50.0},
                                     .loss = 1.25,
                                     .upload_bytes = 4096,
                                     .download_bytes = 8192,
                                     .clients_enrolled = 10,
                                     .client_rounds = 30,
                                     .late_uploads = 2,
                                     .dropped = 1,
                                     .forgetting = 12.5};
  CHECK(hex_of(tensorboard_events({evaluation}).substr(tensorboard_events({}).size())) ==
        "11010000000000009b3d257809000000000000044010ad022a82020a0f0a0861636375726163791500007a420a160a0f7461"
        "736b5f61636375726163792f3115000096420a160a0f7461736b5f61636375726163792f3215000048420a0b0a046c6f7373"
        "150000a03f0a110a0a666f7267657474696e6715000048410a170a10636c69656e74732f656e726f6c6c656415000020410a"
        "150a0e636c69656e74732f726f756e6473150000f0410a1b0a14636c69656e74732f6c6174655f75706c6f61647315000000"
        "400a160a0f636c69656e74732f64726f70706564150000803f0a1b0a14747261666669632f75706c6f61645f627974657315"
        "000080450a1d0a16747261666669632f646f776e6c6f61645f6279746573150000004634ca28e9");
}

TEST_CASE("a training loss and its terms are scalars if present") {
  const auto file = tensorboard_events(
      {evaluation_record{.training_loss = 0.5, .training_loss_terms = {{"kl", 0.25}, {"cross_entropy", 0.25}}}});
  CHECK(file.find("\x0d"
                  "training_loss\x15" +
                  std::string{0, 0, 0, 0x3f}) != std::string::npos); // length, text, 0.5f
  CHECK(file.find("training_loss_terms/kl\x15" + std::string{0, 0, static_cast<char>(0x80), 0x3e}) !=
        std::string::npos);
  CHECK(file.find("training_loss_terms/cross_entropy") != std::string::npos);
  CHECK(tensorboard_events({evaluation_record{}}).find("training_loss") == std::string::npos);
}
