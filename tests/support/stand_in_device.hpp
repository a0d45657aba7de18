/// stand_in_device: a device for tests on machines that have none. LibTorch takes it for a device other than the CPU, so
/// nets, losses and methods go the way that they go on CUDA; our kernels run thread by thread on the host. Two mistakes
/// that end a run on CUDA end it here too: tensors of the device and of the host in one operation, and a host that reads
/// the device's memory by address, where the processor has protection keys. Bits are those of the CPU, not of a GPU.
#pragma once
namespace mneme::test {

/// While it lives, `worker.device = "auto"` takes the device. LibTorch keeps it until the process ends.
class stand_in_device {
public:
  stand_in_device();
  ~stand_in_device();
  stand_in_device(const stand_in_device&) = delete;
  stand_in_device& operator=(const stand_in_device&) = delete;

  static constexpr const char* name = "stand_in:0"; ///< For executors and tensors.
  /// Whether a host that reads the device's memory by address is ended on this machine.
  [[nodiscard]] static bool has_closed_memory();
};

} // namespace mneme::test
