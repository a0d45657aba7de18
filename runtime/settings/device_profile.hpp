/// device_profile: computing speed and links of a kind of device, as measured or published.
#pragma once
#include "runtime/options/keys.hpp"
#include <optional>
namespace mneme {

/// Measured speed of a net on the device.
struct net_speed {
  std::string net{};                    ///< Value of model.name.
  std::int64_t parameters = 0;          ///< Identifies the net: nets of one name differ by keys, rows and classes.
  std::int64_t batch = 0;               ///< Rows per step; 0: full batch.
  double train_rows_per_second = 0.0;   ///< Forward, backward and optimizer.
  double forward_rows_per_second = 0.0; ///< 0: three times the rate of training.
};

/// A link to the server. A bandwidth of 0 is instantaneous.
struct link_profile {
  device_value uplink_mbit = 0.0, downlink_mbit = 0.0; ///< Drawn for each client.
  virtual_duration latency{0};
  log_normal jitter{.median = 0.0}; ///< Additional seconds of latency, drawn for each transfer.
};

struct device_profile {
  std::string title{};
  std::vector<std::string> sources{}; ///< Source of each figure.
  // Computing: rates of nets, or the values from which they are derived.
  double flops_per_second = 0.0, bytes_per_second = 0.0; ///< 0: not stated.
  virtual_duration job_start{0}, round_start{0};
  byte_size memory{}; ///< 0: not stated.
  std::vector<net_speed> nets{};
  std::optional<link_profile> link{}; ///< nullopt: links of the scenario.
  std::string content{};              ///< Digest of its text, and of its link's text if that is separate.
  std::string source{};               ///< Its file, or "profile 'lte'", for messages.
};

} // namespace mneme
