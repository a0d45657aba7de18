#include "tests/support/fake_device.hpp"
#include "runtime/base/intra_op_threads.hpp"
#include "runtime/kernels/cuda/launches.hpp"
#include "runtime/kernels/cuda/on_device.hpp"
#include "tests/support/grids.hpp"
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <bit>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <torch/library.h>
namespace mneme::test {
namespace {

constexpr auto kind = c10::DeviceType::PrivateUse1;

// -- memory -----------------------------------------------------------------------------------------------------------

/// The device's memory. Protection keys apply per thread. A read by a host thread is therefore detected even while
/// other threads compute on the device.
class device_memory {
public:
  static device_memory& only() {
    static auto& memory = *new device_memory; // never destroyed: tensors may outlive static objects
    return memory;
  }
  void* take(std::size_t bytes) {
    const auto size = size_of_block(bytes);
    const std::scoped_lock lock(guard_);
    auto& free = free_[size];
    if (!free.empty()) {
      void* const taken = free.back();
      free.pop_back();
      return taken;
    }
    TORCH_CHECK(used_ + size <= bytes_max, "the stand-in device has no memory left");
    used_ += size;
    return first_ + used_ - size;
  }
  void give_back(void* address, std::size_t bytes) {
    const std::scoped_lock lock(guard_);
    free_[size_of_block(bytes)].push_back(address);
  }
  [[nodiscard]] bool is_closed() const { return key_ >= 0; }
  void open() const { set(0); }
  void close() const { set(PKEY_DISABLE_ACCESS); }

private:
  static constexpr std::size_t bytes_max = std::size_t{8} << 30; // address space, which is reserved but not committed

  device_memory()
      : first_(static_cast<char*>(
            mmap(nullptr, bytes_max, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
        key_(pkey_alloc(0, PKEY_DISABLE_ACCESS)) {
    TORCH_CHECK(first_ != MAP_FAILED, "the stand-in device has no memory");
    if (key_ >= 0 && pkey_mprotect(first_, bytes_max, PROT_READ | PROT_WRITE, key_) != 0)
      key_ = -1;
  }
  /// Few block sizes, so that freed blocks can be reused.
  static std::size_t size_of_block(std::size_t bytes) { return std::bit_ceil(std::max<std::size_t>(bytes, 64)); }
  void set(unsigned rights) const {
    if (key_ >= 0)
      pkey_set(key_, rights);
  }
  char* first_;
  int key_;
  std::mutex guard_{};
  std::size_t used_ = 0;
  std::map<std::size_t, std::vector<void*>> free_{};
};

/// Gives this thread access to the device's memory while it computes for the device.
class computing {
public:
  computing() {
    disable_intra_op_threads(); // LibTorch's other threads have no access
    if (depth++ == 0)
      device_memory::only().open();
  }
  ~computing() {
    if (--depth == 0)
      device_memory::only().close();
  }
  computing(const computing&) = delete;
  computing& operator=(const computing&) = delete;

private:
  static inline thread_local int depth = 0;
};

struct block_of_memory {
  void* address;
  std::size_t bytes;
};
void free_block(void* context) {
  const auto* const block = static_cast<block_of_memory*>(context);
  device_memory::only().give_back(block->address, block->bytes);
  delete block;
}

struct device_allocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    auto* const address = device_memory::only().take(bytes);
    return {address, new block_of_memory{address, bytes}, &free_block, c10::Device(kind, 0)};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    const computing now;
    std::memcpy(to, from, bytes);
  }
};

struct device_guard final : c10::impl::NoOpDeviceGuardImpl<kind> {
  c10::Device exchangeDevice(c10::Device /*to*/) const override { return {kind, 0}; }
  c10::Device getDevice() const override { return {kind, 0}; }
  c10::Stream getStream(c10::Device device) const noexcept override { return stream(device); }
  static c10::Stream stream(c10::Device device) { return c10::Stream(c10::Stream::DEFAULT, device); }
};

/// Registers the device at process start: at the first gradient on any device, autograd fixes the number of devices for
/// its threads.
const device_guard guard;
const c10::impl::DeviceGuardImplRegistrar guard_registration(kind, &guard);

/// Hooks by which autograd tests whether the device exists.
struct device_hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*device*/) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  /// at::manual_seed seeds the generators of all devices.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex /*device*/) const override {
    static const auto generator = at::detail::createCPUGenerator();
    return generator;
  }
};

// -- operations -------------------------------------------------------------------------------------------------------

/// Host view of a device tensor's memory, accessible only while computing.
at::Tensor on_host(const at::Tensor& value) {
  if (value.is_cpu())
    return value;
  return at::from_blob(value.data_ptr(), value.sizes(), value.strides(), value.options().device(at::kCPU));
}

at::Tensor empty_tensor(c10::SymIntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                        std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::Tensor(at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(sizes), c10::GetAllocator(kind),
                                              c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                              c10::dtype_or_default(type), format));
}

at::Tensor empty_strided_tensor(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides,
                                std::optional<at::ScalarType> type, std::optional<at::Layout>,
                                std::optional<at::Device>, std::optional<bool>) {
  return at::Tensor(at::detail::empty_strided_generic(
      C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides), c10::GetAllocator(kind),
      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(type)));
}

at::Tensor copied(const at::Tensor& from, const at::Tensor& to, bool /*non_blocking*/) {
  const computing now;
  on_host(to).copy_(on_host(from));
  return to;
}

const at::Tensor& resized(const at::Tensor& value, c10::SymIntArrayRef sizes, std::optional<at::MemoryFormat>) {
  const auto shape = C10_AS_INTARRAYREF_SLOW(sizes);
  if (value.sizes() == shape) // a view keeps its strides
    return value;
  auto* const impl = value.unsafeGetTensorImpl();
  const auto bytes = static_cast<std::size_t>(c10::multiply_integers(shape)) * value.element_size();
  auto* const storage = value.storage().unsafeGetStorageImpl();
  if (storage->nbytes() < bytes) {
    storage->set_data_ptr_noswap(c10::GetAllocator(kind)->allocate(bytes));
    storage->set_nbytes(bytes);
  }
  impl->set_sizes_contiguous(shape);
  return value;
}

at::Tensor copied_and_resized(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  return copied(from, to, false);
}

/// For unknown devices, LibTorch dispatches convolutions to separate operators.
at::Tensor convolved(const at::Tensor& in, const at::Tensor& filters, const std::optional<at::Tensor>& bias,
                     at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                     at::IntArrayRef output_padding, std::int64_t groups) {
  const computing now;
  const auto shift = bias && bias->defined() ? std::optional(bias->cpu()) : std::nullopt;
  return at::convolution(in.cpu(), filters.cpu(), shift, stride, padding, dilation, transposed, output_padding, groups)
      .to(in.device());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_slopes(const at::Tensor& d_out, const at::Tensor& in,
                                                                  const at::Tensor& filters, at::IntArrayRef stride,
                                                                  at::IntArrayRef padding, at::IntArrayRef dilation,
                                                                  bool transposed, at::IntArrayRef output_padding,
                                                                  std::int64_t groups, std::array<bool, 3> mask) {
  const computing now;
  const std::array<std::int64_t, 1> biases{transposed ? filters.size(1) * groups : filters.size(0)};
  const auto [a, b, c] = at::convolution_backward(d_out.cpu(), in.cpu(), filters.cpu(), at::IntArrayRef(biases), stride,
                                                  padding, dilation, transposed, output_padding, groups, mask);
  const auto there = [&](const at::Tensor& value) { return value.defined() ? value.to(in.device()) : value; };
  return {there(a), there(b), there(c)};
}

/// Like CUDA: only scalars and indices may be on the host.
void require_one_device(const c10::OperatorHandle& operation, const torch::jit::Stack& stack) {
  const auto& name = operation.schema().name();
  if (name == "aten::index" || name == "aten::index_put_" || name == "aten::_index_put_impl_")
    return;
  bool on_device = false, on_host = false;
  const auto look = [&](const at::Tensor& value) {
    if (!value.defined())
      return;
    on_device = on_device || value.device().type() == kind;
    on_host = on_host || (value.is_cpu() && value.dim() > 0);
  };
  for (const auto& argument : torch::jit::last(stack, operation.schema().arguments().size()))
    if (argument.isTensor())
      look(argument.toTensor());
    else if (argument.isTensorList())
      for (const at::Tensor& value : argument.toTensorList())
        look(value);
    else if (argument.isList())
      for (const c10::IValue& value : argument.toList())
        if (value.isTensor())
          look(value.toTensor());
  TORCH_CHECK(!(on_device && on_host),
              "Expected all tensors to be on the same device, but found at least two devices: ", name);
}

void compute_on_host(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  require_one_device(operation, *stack);
  at::native::cpu_fallback(operation, stack);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&compute_on_host>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", TORCH_FN(empty_tensor));
  library.impl("empty_strided", TORCH_FN(empty_strided_tensor));
  library.impl("_copy_from", TORCH_FN(copied));
  library.impl("_copy_from_and_resize", TORCH_FN(copied_and_resized));
  library.impl("resize_", TORCH_FN(resized));
  library.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  library.impl("view", TORCH_FN(at::native::view));
  library.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  library.impl("unfold", TORCH_FN(at::native::unfold));
  library.impl("convolution_overrideable", TORCH_FN(convolved));
  library.impl("convolution_backward_overrideable", TORCH_FN(convolution_slopes));
}

template <class... Launches>
void run_launches_on_host() {
  ((kernels::cuda::fake_device_runner<Launches> =
        [](const Launches& launch) {
          const computing now;
          run_on_host(launch);
        }),
   ...);
}

bool registered() {
  static device_allocator allocator;
  static device_hooks hooks;
  c10::SetAllocator(kind, &allocator);
  c10::register_privateuse1_backend("stand_in");
  at::RegisterPrivateUse1HooksInterface(&hooks);
  using namespace kernels::cuda;
  run_launches_on_host<gathered_rows, cross_entropy_group, sgd_models, adam_models, squares_of_models, clip_factors,
                       scaled_models, folded_uploads, folded_mean>();
  return true;
}

} // namespace

stand_in_device::stand_in_device() {
  static const bool once = registered();
  kernels::cuda::fake_device_name = once ? name : "";
}

stand_in_device::~stand_in_device() { kernels::cuda::fake_device_name = ""; }

bool stand_in_device::has_closed_memory() { return device_memory::only().is_closed(); }

} // namespace mneme::test
