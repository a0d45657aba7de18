/// device_profile: measured or published computing speed and links of one kind of device.
#pragma once
#include "runtime/options/keys.hpp"
#include <optional>
namespace mneme {

/// Measured speed of a net on the device.
struct net_speed {
  std::string net{};                    ///< Value of model.name.
  std::int64_t parameters = 0;          ///< Distinguishes nets that have the same name but other keys or classes.
  std::int64_t batch = 0;               ///< Rows per training step; 0: full batch.
  double train_rows_per_second = 0.0;   ///< Rate of training, including backward pass and optimizer.
  double forward_rows_per_second = 0.0; ///< Rate of inference; 0: three times the training rate.
};

/// A link to the server. A bandwidth of 0 makes transfers instantaneous.
struct link_profile {
  device_value uplink_mbit = 0.0, downlink_mbit = 0.0; ///< Drawn once per client.
  virtual_duration latency{0};
  log_normal jitter{.median = 0.0}; ///< Additional latency in seconds, drawn for each transfer.
};

struct device_profile {
  std::string title{};
  std::vector<std::string> sources{}; ///< References for the numbers of the profile.
  // Computing speed: rates of nets, or the values from which they are derived.
  double flops_per_second = 0.0, bytes_per_second = 0.0; ///< 0: unknown.
  virtual_duration job_start{0}, round_start{0};
  byte_size memory{}; ///< 0: unknown.
  std::vector<net_speed> nets{};
  std::optional<link_profile> link{}; ///< nullopt: use the scenario's links.
  std::string content{};              ///< Digest of the profile's text, and of the link's text if that is separate.
  std::string source{};               ///< File path or "profile 'lte'", for messages.
};

} // namespace mneme
