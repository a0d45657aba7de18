/// device_cases: test inputs for device kernels: a device, uploads, and segments of weights.
#pragma once
#include "runtime/models/model.hpp"
#include "runtime/training/executor.hpp"
#include "runtime/training/folding.hpp"
#include "tests/support/fake_device.hpp"
#include "tests/support/grids.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <optional>
namespace mneme::test {

/// Device for a test, selected by `worker.device = "auto"` during its lifetime: a CUDA device, or the emulated device
/// if this machine has none. If MNEME_DEVICE_REQUIRED is set (by tools/gpu_check), a missing CUDA device fails the
/// test.
class device_of_test {
public:
  device_of_test() {
    if (const auto cuda = resolve_device("cuda:0"); cuda)
      return;
    else if (std::getenv("MNEME_DEVICE_REQUIRED"))
      FAIL(cuda.error());
    instead_.emplace();
  }
  [[nodiscard]] at::Device device() const { return at::Device(instead_ ? stand_in_device::name : "cuda:0"); }

private:
  std::optional<stand_in_device> instead_{};
};

/// Uploads with weights 11, 12, ..., which start `offset` floats after an aligned address.
inline std::vector<weighted_upload> drawn_uploads(std::size_t count, std::int64_t size, std::int64_t offset,
                                                  const at::Device& device = at::kCPU) {
  std::vector<weighted_upload> made;
  for (std::size_t i = 0; i < count; ++i)
    made.push_back({.values = drawn_floats({size + offset}, i).to(device).narrow(0, offset, size),
                    .weight = 11.0 + static_cast<double>(i)});
  return made;
}

/// Segments of [size] with irregular bounds: three of every seven weights are trained, then all of the last ones.
inline std::vector<segment> odd_segments(std::int64_t size) {
  std::vector<segment> made;
  for (std::int64_t i = 0; i + 3 < std::min<std::int64_t>(size, 140); i += 7)
    made.push_back({i + 1, 3});
  const auto rest = std::min<std::int64_t>(size, 141);
  made.push_back({rest, size - rest});
  return made;
}

} // namespace mneme::test
