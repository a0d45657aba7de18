/// upload_size: bytes of an upload on the wire, with the compression and masking of [uploads].
#pragma once
#include "runtime/base/tensor_map.hpp"
#include "runtime/models/model.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Bytes that a client sends to the server for `upload`. Equals wire_bytes() without compression and masks. Otherwise,
/// the float32 tensors that are weights of the net are sent as
///     top_k < 1: a 4-byte index and a value for each kept entry,
///     quantise: values of `quantise` bits each, packed,
///     masked: values of 32 + ceil(log2 cohort) bits each (with quantise: its bits in place of 32), packed,
///             and the keys of masked_bytes().
/// Scales are not counted. Other tensors of the method are sent unchanged. Null: 0.
[[nodiscard]] std::int64_t upload_bytes(const tensor_map* upload, const scenario& settings, const model& net);

/// True if upload_bytes() differs from wire_bytes().
[[nodiscard]] bool changes_upload_bytes(const uploads_section& uploads);

/// Bytes of keys and secret shares of one client in a round of secure aggregation with n clients (Bonawitz et al. 2017,
/// section 7.1). The upload has two public keys, 2 (n - 1) encrypted shares and n shares. The download has the keys and
/// shares of the other clients. Keys and shares have 32 bytes.
struct masking_bytes {
  std::int64_t up = 0, down = 0;
};
/// Zero without secure aggregation.
[[nodiscard]] masking_bytes masked_bytes(const scenario& settings);

/// Number of clients in a full cohort.
[[nodiscard]] std::int64_t full_cohort(const scenario& settings);

} // namespace mneme
