/// device_profile: how fast a kind of device computes and how its links are, as measured or published.
#pragma once
#include "runtime/options/keys.hpp"
#include <optional>
namespace mneme {

/// What was measured of a net on the device.
struct net_speed {
  std::string net{};           ///< As model.name has it.
  std::int64_t parameters = 0; ///< The net's own number: nets of one name differ by their keys, rows and classes.
  std::int64_t batch = 0;      ///< Rows of a step; 0: full batch.
  double train_rows_per_second = 0.0;   ///< Forward, backward and optimizer.
  double forward_rows_per_second = 0.0; ///< 0: three times the rate of training.
};

/// A link to the server. A bandwidth of 0 is instantaneous.
struct link_profile {
  device_value uplink_mbit = 0.0, downlink_mbit = 0.0; ///< Drawn for each client.
  virtual_duration latency{0};
  log_normal jitter{.median = 0.0}; ///< Seconds that come on top of the latency, drawn for each transfer.
};

struct device_profile {
  std::string title{};
  std::vector<std::string> sources{}; ///< Where each figure comes from.
  // The computer: rates of nets, or what they follow from.
  double flops_per_second = 0.0, bytes_per_second = 0.0; ///< 0: not stated.
  virtual_duration job_start{0}, round_start{0};
  byte_size memory{}; ///< 0: not stated.
  std::vector<net_speed> nets{};
  std::optional<link_profile> link{}; ///< None: links are the scenario's.
  std::string content{};              ///< The digest of its text, and of its link's where that is another's.
  std::string source{};               ///< Its file, or "profile 'lte'", for messages.
};

} // namespace mneme
