// Bytes of uploads, worked out by hand for a net of 10 weights.
#include "runtime/method/upload_size.hpp"
#include "tests/support/method_driver.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

namespace {

std::int64_t bytes_with(const uploads_section& uploads, const tensor_map& upload, std::int64_t cohort = 10) {
  scenario settings;
  settings.rounds.cohort = cohort;
  settings.uploads = uploads;
  return upload_bytes(&upload, settings, *model_named("mlp", {1, 1, 4}, 2));
}

tensor_map ten_weights() { return *weights_only(at::zeros({10})); }

} // namespace

TEST_CASE("upload_bytes() counts kept entries with their indices, and packed bits") {
  CHECK(bytes_with({}, ten_weights()) == 40);
  CHECK(bytes_with({.clip_norm = 1.0}, ten_weights()) == 40);
  CHECK(bytes_with({.top_k = 0.25}, ten_weights()) == 3 * (4 + 4));
  CHECK(bytes_with({.quantise = 3}, ten_weights()) == 4);                        // 30 bits
  CHECK(bytes_with({.top_k = 0.25, .quantise = 3}, ten_weights()) == 3 * 4 + 2); // 9 bits
}

TEST_CASE("upload_bytes() leaves the method's own tensors uncompressed") {
  auto upload = ten_weights();
  upload.put("control.weights", at::zeros({10}));
  upload.put("rows", at::zeros({2}, at::kLong));
  CHECK(bytes_with({.top_k = 0.1}, upload) == 8 + 40 + 16);
}

TEST_CASE("masks add ceil(log2 n) bits to a value, and keys and shares (Bonawitz et al. 2017, section 7.1)") {
  const uploads_section masked{.secure_aggregation = secure_aggregation_kind::masked};
  // 10 values of 32 + 2 bits; 2 keys, 2 * 3 shares of others and 4 own shares of 32 bytes
  CHECK(bytes_with(masked, ten_weights(), 4) == 43 + 32 * (2 + 6 + 4));
  CHECK(bytes_with(masked, ten_weights(), 1) == 40 + 32 * (2 + 1));
  scenario settings;
  settings.rounds.cohort = 4;
  settings.uploads = masked;
  CHECK(masked_bytes(settings).down == 32 * (6 + 6));
}
