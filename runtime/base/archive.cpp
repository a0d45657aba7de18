#include "runtime/base/archive.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/huge_pages.hpp"
#include "runtime/base/new_tensor.hpp"
#include <algorithm>
#include <bit>
#include <cstring>
namespace mneme {
namespace {

static_assert(std::endian::native == std::endian::little, "checkpoints are little-endian");

constexpr std::size_t axes_max = 16;
constexpr std::int8_t on_device = 0x40; // flag bit, larger than all dtype numbers
static_assert(static_cast<int>(at::ScalarType::NumOptions) < on_device);

enum class exchanged_as : std::uint8_t { itself, named, name };

bool known_dtype(at::ScalarType dtype) {
  switch (dtype) {
  case at::kFloat:
  case at::kDouble:
  case at::kHalf:
  case at::kBFloat16:
  case at::kLong:
  case at::kInt:
  case at::kShort:
  case at::kChar:
  case at::kByte:
  case at::kBool:
    return true;
  default:
    return false;
  }
}

/// Number of elements of a tensor with these sizes. Returns nullopt if they do not fit into `bytes`.
std::optional<std::size_t> elements_within(const std::vector<std::int64_t>& sizes, std::size_t element_bytes,
                                           std::size_t bytes) {
  std::int64_t stride = 1; // LibTorch computes strides for empty tensors, too
  bool is_empty = false;
  for (const auto size : sizes) {
    if (size < 0 || __builtin_mul_overflow(stride, std::max<std::int64_t>(size, 1), &stride))
      return std::nullopt;
    is_empty = is_empty || size == 0;
  }
  const auto count = is_empty ? 0 : static_cast<std::size_t>(stride);
  return count <= bytes / element_bytes ? std::optional(count) : std::nullopt;
}

/// Throws archive_error if a loaded tensor would change the size or dtype of an existing one, since callers rely on
/// them.
void expect_alike(const at::Tensor& before, const at::Tensor& after) {
  if (before.defined() && after.defined() && (before.sizes() != after.sizes() || before.dtype() != after.dtype()))
    throw archive_error("has a tensor of " + std::to_string(after.numel()) + " numbers where one of " +
                        std::to_string(before.numel()) + " was expected");
}

} // namespace

archive::archive(buffer from, std::size_t first, std::size_t count)
    : source_(std::move(from)), at_(first), end_(first + count) {
  MNEME_CHECK(source_ && first <= source_->size() && count <= source_->size() - first, first, count);
}

archive& archive::section(std::string_view name) {
  std::string written(name);
  visit(written);
  if (written != name)
    throw archive_error("lacks the section '" + std::string(name) + "' where it was expected");
  return *this;
}

void archive::each_piece(const std::function<void(std::span<const std::byte>)>& then) const {
  std::size_t from = 0;
  for (const auto& part : blobs_) {
    then(std::span(bytes_).subspan(from, part.at - from));
    then({static_cast<const std::byte*>(part.host.const_data_ptr()), part.host.nbytes()});
    from = part.at;
  }
  then(std::span(bytes_).subspan(from));
}

archive::buffer archive::contents() const {
  std::vector<std::byte> bytes;
  bytes.reserve(size());
  each_piece([&](std::span<const std::byte> piece) { bytes.insert(bytes.end(), piece.begin(), piece.end()); });
  return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

void archive::expect_end() const {
  if (at_ != end_)
    throw archive_error("has another " + std::to_string(end_ - at_) + " bytes");
}

// -- values -----------------------------------------------------------------------------------------------------------

void archive::visit(bool& value) {
  auto byte = static_cast<std::uint8_t>(value ? 1 : 0);
  raw(&byte, 1);
  if (byte > 1)
    throw archive_error("has the byte " + std::to_string(byte) + " where a boolean was expected");
  value = byte == 1;
}

void archive::visit(std::string& text) {
  text.resize(counted(text.size(), 1));
  raw(text.data(), text.size());
}

std::pair<std::size_t, bool> archive::numbered(const std::shared_ptr<const void>& handle, std::type_index kind) {
  std::uint64_t number = 0;
  if (!loading() && handle) {
    const auto place = numbers_.emplace(handle.get(), shared_.size() + 1).first;
    number = place->second;
  }
  visit(number);
  const bool is_new = number == shared_.size() + 1;
  if (is_new) {
    shared_.push_back(loading() ? nullptr : handle);
    kinds_.push_back(kind);
  } else if (number > shared_.size() || (number > 0 && (kinds_[number - 1] != kind || !shared_[number - 1])))
    throw archive_error("refers to shared object " + std::to_string(number) + " of " + std::to_string(shared_.size()));
  return {number, is_new};
}

std::size_t archive::counted(std::size_t count, std::size_t bytes_min) {
  std::uint64_t stated = count;
  raw(&stated, sizeof stated);
  if (loading() && stated > (end_ - at_) / bytes_min)
    throw archive_error("names " + std::to_string(stated) + " items, which are more than its bytes can hold");
  return stated;
}

void archive::raw(void* data, std::size_t count) {
  if (count == 0)
    return;
  if (!loading()) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), first, first + count);
    return;
  }
  if (count > end_ - at_)
    throw archive_error("ends early");
  std::memcpy(data, source_->data() + at_, count);
  at_ += count;
}

// -- tensors ----------------------------------------------------------------------------------------------------------

void archive::visit(at::Tensor& value) {
  if (!loading())
    return save_tensor(value, false);
  const auto before = value;
  load_tensor(value);
  expect_alike(before, value);
}

void archive::visit(tensor_map& tensors) {
  const auto count = counted(tensors.size(), 1);
  if (!loading()) {
    for (const auto& [name, value] : tensors) {
      auto text = name;
      auto handle = value;
      visit(text);
      frozen_tensor(handle);
    }
    return;
  }
  tensors = {};
  for (std::size_t i = 0; i < count; ++i) {
    std::string name;
    at::Tensor value;
    visit(name);
    frozen_tensor(value);
    if (!value.defined())
      throw archive_error("has a tensor '" + name + "' without a value");
    tensors.put(std::move(name), std::move(value));
  }
}

/// Saves or loads a tensor's number: 0 if undefined, otherwise from 1. The content follows when a number first occurs.
void archive::frozen_tensor(at::Tensor& value) {
  std::uint64_t number = 0;
  const auto before = value;
  if (!loading() && value.defined())
    number = frozen_numbers_.emplace(value.unsafeGetTensorImpl(), frozen_.size() + 1).first->second;
  visit(number);
  if (number > frozen_.size() + 1)
    throw archive_error("refers to tensor " + std::to_string(number) + " of " + std::to_string(frozen_.size()));
  if (number == frozen_.size() + 1) {
    if (loading())
      load_frozen(value);
    else
      save_frozen(value);
    frozen_.push_back(value);
  }
  value = number == 0 ? at::Tensor() : frozen_[number - 1];
  if (loading())
    expect_alike(before, value);
}

/// Saves an immutable tensor. With an exchange, a tag states the form: content, content with digest, or digest only.
void archive::save_frozen(const at::Tensor& value) {
  if (!exchange_)
    return save_tensor(value, true);
  const auto offered = exchange_->offer(value);
  auto comes = !offered ? exchanged_as::itself : offered->is_new ? exchanged_as::named : exchanged_as::name;
  visit(comes);
  if (offered) {
    auto name = offered->name;
    (*this)(name);
  }
  if (comes != exchanged_as::name)
    save_tensor(value, true);
}

void archive::load_frozen(at::Tensor& value) {
  if (!exchange_)
    return load_tensor(value);
  auto comes = exchanged_as::itself;
  visit(comes);
  if (comes > exchanged_as::name)
    throw archive_error("has an entry that is neither a tensor nor a reference to one");
  digest128 name;
  if (comes != exchanged_as::itself)
    (*this)(name);
  if (comes == exchanged_as::name) {
    value = exchange_->find(name);
    return;
  }
  load_tensor(value);
  if (comes == exchanged_as::named && !value.defined())
    throw archive_error("has a reference to an undefined tensor");
  if (comes == exchanged_as::named)
    exchange_->keep(name, value);
}

/// Format: dtype (-1: undefined; plus a flag bit for device tensors), number of axes, sizes, content on the host.
void archive::save_tensor(const at::Tensor& value, bool frozen) {
  auto dtype = static_cast<std::int8_t>(value.defined() ? static_cast<int>(value.scalar_type()) : -1);
  if (value.defined() && !value.is_cpu())
    dtype = static_cast<std::int8_t>(dtype | on_device);
  visit(dtype);
  if (!value.defined())
    return;
  MNEME_CHECK(known_dtype(value.scalar_type()), value.scalar_type());
  auto sizes = value.sizes().vec();
  visit(sizes);
  const bool is_host = value.device().is_cpu() && value.is_contiguous();
  const auto host = !is_host ? value.cpu().contiguous() : frozen ? value : value.clone();
  blob_bytes_ += host.nbytes();
  blobs_.push_back({.at = bytes_.size(), .host = host});
}

void archive::load_tensor(at::Tensor& value) {
  std::int8_t stated = 0;
  visit(stated);
  value = at::Tensor();
  if (stated == -1)
    return;
  const bool lay_on_device = (stated & on_device) != 0;
  const auto dtype = static_cast<at::ScalarType>(stated & ~on_device);
  std::vector<std::int64_t> sizes;
  visit(sizes);
  if (!known_dtype(dtype) || sizes.size() > axes_max)
    throw archive_error("has something else where a tensor was expected");
  const auto count = elements_within(sizes, c10::elementSize(dtype), end_ - at_);
  if (!count)
    throw archive_error("has a tensor that is larger than the remaining bytes");
  value = new_tensor(sizes, dtype);
  prefer_huge_pages(value.data_ptr(), value.nbytes());
  raw(value.data_ptr(), *count * c10::elementSize(dtype));
  if (lay_on_device)
    value = value.to(device_);
}

} // namespace mneme
