#include "runtime/federation/delivery_buffer.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

delivery upload_of(std::uint32_t client) { return {.from = {client}}; }

} // namespace

TEST_CASE("a bundle holds uploads in order of arrival and is due by number or bytes") {
  delivery_buffer buffer;
  CHECK_FALSE(buffer.take());
  for (std::uint32_t c = 0; c < tuning::bundled_uploads_max; ++c) {
    CHECK_FALSE(buffer.is_due());
    buffer.add(upload_of(c), 1);
  }
  CHECK(buffer.is_due());
  const auto bundle = buffer.take();
  REQUIRE(bundle);
  REQUIRE(bundle->uploads.size() == tuning::bundled_uploads_max);
  for (std::uint32_t c = 0; c < tuning::bundled_uploads_max; ++c)
    CHECK(bundle->uploads[c].from == client_id{c});
  CHECK_FALSE(bundle->ack_when_folded);
  CHECK_FALSE(buffer.is_due());
  CHECK_FALSE(buffer.take());
  buffer.add(upload_of(0), tuning::bundled_bytes_max);
  CHECK(buffer.is_due());
}

TEST_CASE("virtual time waits while the server has too many unfolded uploads") {
  delivery_buffer buffer;
  buffer.add(upload_of(0), tuning::unfolded_bytes_max - 1);
  CHECK_FALSE(buffer.take()->ack_when_folded);
  CHECK_FALSE(buffer.waits_for_server());
  buffer.add(upload_of(1), 1);
  CHECK(buffer.take()->ack_when_folded);
  CHECK(buffer.waits_for_server());
  buffer.on_uploads_folded();
  CHECK_FALSE(buffer.waits_for_server());
  buffer.add(upload_of(2), 1);
  CHECK_FALSE(buffer.take()->ack_when_folded); // the count has started again
}
