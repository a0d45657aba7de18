/// loss_sums: losses of a group's clients and the terms of each loss, summed over the steps of an epoch.
#pragma once
#include "runtime/method/training.hpp"
#include "runtime/training/optimizers.hpp"
#include <c10/core/Device.h>
#include <map>
#include <memory>
#include <string>
#include <vector>
namespace mneme {

// Axes: K clients of a group.

/// For training on a device, the sums stay on the device until copy_to_host(), so that steps do not wait for the
/// device.
class loss_sums {
public:
  /// @param objective must outlive this object
  loss_sums(const loss& objective, std::size_t clients, const c10::Device& device);

  /// Resets client k's loss to 0.
  void begin_epoch(std::size_t k) { last_epoch_[k] = 0.0; }
  /// Adds the loss of a step of client k.
  void add(std::size_t k, double loss_value) { last_epoch_[k] += loss_value; }
  /// Adds the losses and terms of a step of the clients in `run`.
  void add(model_run run, const loss_output& step);
  /// Adds a penalty on client k's weights to its loss and to the term of this name.
  void add(std::int64_t k, const loss_term& penalty);
  /// True if losses were added on a device.
  [[nodiscard]] bool are_on_device() const { return losses_.defined(); }
  /// Copies the sums to the host. @pre are_on_device()
  void copy_to_host();

  // -- on a device: after copy_to_host() ------------------------------------------------------------------------------
  /// Client k's loss, summed over the steps of the epoch.
  [[nodiscard]] double last_epoch(std::size_t k) const { return last_epoch_[k]; }
  /// Means of client k's loss terms over its steps, by name. Null if the main term is the only one, as for nets that
  /// are trained client by client.
  [[nodiscard]] std::shared_ptr<const std::map<std::string, double>> term_means(std::size_t k,
                                                                                std::int64_t steps) const;

private:
  struct term_sums {
    std::string name{};
    at::Tensor values{};         // [K] float64, on the device of the losses
    std::vector<bool> is_part{}; // [K]; true: the term is part of the client's loss
  };
  term_sums& sums_of(const char* name);

  const loss& objective_;
  c10::Device device_;
  std::vector<double> last_epoch_; // [K]
  at::Tensor losses_;              // [K] float64, losses on a device until they are copied
  std::vector<term_sums> terms_;
};

} // namespace mneme
