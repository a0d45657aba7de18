#include "runtime/data/generated_row_store.hpp"
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <stdexcept>
namespace mneme {
namespace {

/// A data set that owns the two tensors whose addresses identify it in the store.
struct generated_rows final : dataset {
  at::Tensor given_images{}, given_labels{};
};

void check(const at::Tensor& images, const at::Tensor& labels) {
  const auto refuse = [](const std::string& text) { throw std::invalid_argument("generated rows: " + text); };
  if (!images.defined() || !labels.defined())
    refuse("images or labels are an undefined tensor");
  if (images.dim() != 4 || images.numel() == 0)
    refuse(fmt::format("images have the shape [{}]; expected [rows, channels, height, width]",
                       fmt::join(images.sizes(), ", ")));
  if (images.scalar_type() != at::kByte && images.scalar_type() != at::kFloat)
    refuse(fmt::format("images are of type {}; expected uint8 (Byte) or float32 (Float)",
                       c10::toString(images.scalar_type())));
  if (labels.dim() != 1 || labels.size(0) != images.size(0))
    refuse(fmt::format("labels have the shape [{}]; expected [{}], one for each image", fmt::join(labels.sizes(), ", "),
                       images.size(0)));
  if (labels.scalar_type() != at::kInt && labels.scalar_type() != at::kLong)
    refuse(fmt::format("labels are of type {}; expected int32 (Int) or int64 (Long)",
                       c10::toString(labels.scalar_type())));
}

std::vector<std::int32_t> labels_in(const at::Tensor& labels, std::int64_t classes) {
  const auto host = labels.cpu().to(at::kLong).contiguous();
  const auto* const values = host.const_data_ptr<std::int64_t>();
  std::vector<std::int32_t> numbers;
  for (std::int64_t i = 0; i < host.numel(); ++i) {
    if (values[i] < 0 || (classes > 0 && values[i] >= classes))
      throw std::invalid_argument(
          fmt::format("generated rows: row {} has the label {}; expected 0 to {}", i, values[i], classes - 1));
    numbers.push_back(static_cast<std::int32_t>(values[i]));
  }
  return numbers;
}

std::shared_ptr<const dataset> made_of(const at::Tensor& images, const at::Tensor& labels, const row_format& format) {
  auto rows = std::make_shared<generated_rows>();
  rows->given_images = images;
  rows->given_labels = labels;
  rows->is_temporary = true;
  rows->labels = labels_in(labels, format.classes);
  rows->transforms.resize(1);
  const auto host = images.cpu().contiguous();
  if (host.scalar_type() == at::kFloat) {
    rows->vectors = host.view({host.size(0), -1});
    rows->vector_shape = {host.size(1), host.size(2), host.size(3)};
    return rows;
  }
  const auto channels = static_cast<std::size_t>(host.size(1));
  if (format.scale.size() != channels)
    throw std::invalid_argument(fmt::format("generated rows: images have {} channels, but the data of the run {}",
                                            channels, format.scale.size()));
  rows->images = host;
  rows->scale = format.scale;
  rows->shift = format.shift;
  return rows;
}

} // namespace

std::shared_ptr<const dataset> generated_row_store::rows_of(const at::Tensor& images, const at::Tensor& labels) {
  check(images, labels);
  const std::lock_guard lock(mutex_);
  const handles name{images.unsafeGetTensorImpl(), labels.unsafeGetTensorImpl()};
  if (const auto entry = known_.find(name); entry != known_.end())
    if (auto rows = entry->second.lock())
      return rows;
  forget_unused();
  auto rows = made_of(images, labels, format_);
  known_[name] = rows;
  return rows;
}

std::size_t generated_row_store::size() {
  const std::lock_guard lock(mutex_);
  forget_unused();
  return known_.size();
}

void generated_row_store::forget_unused() {
  std::erase_if(known_, [](const auto& known) { return known.second.expired(); });
}

sample_view every_row_of(std::shared_ptr<const dataset> source) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(source->files_rows()));
  std::iota(rows.begin(), rows.end(), 0);
  return {.source = std::move(source), .rows = std::make_shared<const std::vector<std::int64_t>>(std::move(rows))};
}

} // namespace mneme
