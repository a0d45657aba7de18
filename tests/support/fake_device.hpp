/// fake_device: an emulated device for tests on machines without a GPU. LibTorch treats it as a non-CPU device, so
/// nets, losses and methods take the same code paths as on CUDA. Our kernels run thread by thread on the host. Two
/// errors that abort a run on CUDA also abort it on this device: tensors of device and host in one operation, and host
/// access to device memory (on processors with protection keys). Bits are those of the CPU, not of a GPU.
#pragma once
namespace mneme::test {

/// `worker.device = "auto"` selects the device during its lifetime. LibTorch keeps the device until the process ends.
class stand_in_device {
public:
  stand_in_device();
  ~stand_in_device();
  stand_in_device(const stand_in_device&) = delete;
  stand_in_device& operator=(const stand_in_device&) = delete;

  static constexpr const char* name = "stand_in:0"; ///< For executors and tensors.
  /// True if host access to the device's memory is detected on this machine.
  [[nodiscard]] static bool has_closed_memory();
};

} // namespace mneme::test
