#include "runtime/population/device_speeds.hpp"
#include "runtime/models/step_bytes.hpp"
#include "runtime/models/work_count.hpp"
#include "runtime/options/unit_text.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <optional>
namespace mneme {
namespace {

constexpr double forward_share = 1.0 / 3.0;    // share of the training time; a backward pass takes about twice as long
constexpr std::int64_t buffers_of_weights = 4; // for weights, gradients, momentum and the received model

class speed_finder {
public:
  speed_finder(const scenario& from, const net_summary& at_work) : from_(from), at_work_(at_work) {}

  expected<std::vector<device_speed>> find() {
    std::vector<device_speed> speeds;
    for (const auto& profile : from_.devices.profiles_read) {
      auto speed = of_net(*profile);
      speed.job_start = profile->job_start;
      speed.round_start = profile->round_start;
      speeds.push_back(speed);
      check_memory(*profile);
    }
    if (!errors_.empty())
      return tl::unexpected(std::move(errors_));
    return speeds;
  }

private:
  void add_error(std::string text) { errors_.push_back({from_.where("devices.profiles"), std::move(text)}); }

  device_speed of_net(const device_profile& profile) {
    const auto batch = from_.training.batch;
    std::vector<std::string> batches;
    for (const auto& known : profile.nets) {
      if (known.net != from_.model.name || known.parameters != at_work_.net.size())
        continue;
      if (known.batch == batch)
        return {.train_rows_per_second = known.train_rows_per_second,
                .forward_rows_per_second = known.forward_rows_per_second > 0.0
                                               ? known.forward_rows_per_second
                                               : known.train_rows_per_second / forward_share};
      batches.push_back(std::to_string(known.batch));
    }
    if (profile.flops_per_second > 0.0)
      return by_work(profile);
    const auto entry = fmt::format("net = {}, parameters = {}", quote_text(from_.model.name), at_work_.net.size());
    add_error(
        batches.empty()
            ? fmt::format("{} has no [[nets]] entry with {}, and no flops_per_second; expected one of them, as "
                          "`mneme calibrate` measures on such a device",
                          profile.source, entry)
            : fmt::format("{} has {} at batch {}, not at training.batch = {}, and no flops_per_second; expected one "
                          "of them, as `mneme calibrate` measures on such a device",
                          profile.source, entry, joined(batches, [](const auto& word) { return word; }), batch));
    return {};
  }

  /// Speed derived from the operations per row and the bytes accessed per step.
  device_speed by_work(const device_profile& profile) {
    if (!pass_)
      pass_ = work_of_pass(at_work_.net, at_work_.shape, 1, {0, std::min(at_work_.classes, at_work_.net.classes())});
    const auto rows = static_cast<double>(rows_of_step());
    const auto bytes = static_cast<double>(step_bytes(at_work_.net, rows_of_step()));
    const auto rate = [&](double operations, double share) {
      const auto in_products = rows * operations / profile.flops_per_second;
      const auto in_memory = profile.bytes_per_second > 0.0 ? share * bytes / profile.bytes_per_second : 0.0;
      return rows / std::max({in_products, in_memory, 1e-12});
    };
    return {.train_rows_per_second = rate(pass_->forward + pass_->backward, 1.0),
            .forward_rows_per_second = rate(pass_->forward, forward_share)};
  }

  void check_memory(const device_profile& profile) {
    const auto bytes = buffers_of_weights * std::int64_t{sizeof(float)} * at_work_.net.size() +
                       step_bytes(at_work_.net, rows_of_step());
    if (profile.memory.bytes > 0 && bytes > profile.memory.bytes)
      add_error(fmt::format("{} has {} of memory, and a step of {} rows of this net takes about {}; expected a smaller "
                            "training.batch or net, or another device",
                            profile.source, size_text(profile.memory), rows_of_step(), size_text({bytes})));
  }

  /// Rows per step; a full batch counts as a batch of the default size.
  [[nodiscard]] std::int64_t rows_of_step() const {
    const auto batch = from_.training.batch;
    return batch > 0 ? batch : training_section{}.batch;
  }

  const scenario& from_;
  const net_summary& at_work_;
  std::optional<pass_work> pass_;
  diagnostics errors_;
};

} // namespace

expected<std::vector<device_speed>> device_speeds_of(const scenario& from, const net_summary& at_work) {
  return speed_finder(from, at_work).find();
}

} // namespace mneme
