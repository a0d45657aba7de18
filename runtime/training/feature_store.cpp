#include "runtime/training/feature_store.hpp"
#include "runtime/base/check.hpp"
#include "runtime/storage/checksummed_tensors.hpp"
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <algorithm>
#include <bit>
namespace mneme {
namespace {

constexpr const char *features_name = "features", *known_name = "known";

std::size_t at_row(std::int64_t row) { return static_cast<std::size_t>(row); }

} // namespace

digest128 content_of(const dataset& source) {
  run_digest digest;
  const auto& table = source.vectors.defined() ? source.vectors : source.images;
  for (const auto extent : table.sizes())
    digest.add(extent);
  digest.add(digest_of({static_cast<const std::byte*>(table.const_data_ptr()), table.nbytes()}));
  for (const auto& map : source.transforms) {
    digest.add(map.invert);
    digest.add(map.across_channels);
    digest.add(digest_of(std::as_bytes(std::span(map.pixels))));
  }
  if (source.shown.changes()) {
    digest.add(source.shown.resize);
    digest.add(source.shown.crop);
  }
  for (const auto* values : {&source.scale, &source.shift})
    for (const auto value : *values)
      digest.add(static_cast<double>(value));
  return digest.value();
}

std::vector<std::int64_t> feature_store::table::missing(std::span<const std::int64_t> rows) const {
  const std::lock_guard lock(guard_);
  std::vector<std::int64_t> values;
  for (const auto row : rows)
    if (known_[at_row(row)] == 0)
      values.push_back(row);
  return values;
}

void feature_store::table::put(std::span<const std::int64_t> rows, const at::Tensor& features) {
  const auto host = features.cpu().contiguous();
  const auto width = features_.size(1);
  MNEME_CHECK(host.size(0) == std::ssize(rows) && host.size(1) == width, host.sizes(), width);
  const std::lock_guard lock(guard_);
  changed_ = true;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(host.const_data_ptr<float>() + static_cast<std::int64_t>(i) * width, width,
                features_.mutable_data_ptr<float>() + rows[i] * width);
    known_[at_row(rows[i])] = 1;
  }
}

void feature_store::table::copy_to(at::Tensor& out, std::span<const std::int64_t> rows) const {
  const auto width = features_.size(1);
  MNEME_CHECK(out.size(0) == std::ssize(rows) && out.size(1) == width && out.is_contiguous(), out.sizes(), width);
  const std::lock_guard lock(guard_);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    MNEME_CHECK(known_[at_row(rows[i])] == 1, rows[i]);
    std::copy_n(features_.const_data_ptr<float>() + rows[i] * width, width,
                out.mutable_data_ptr<float>() + static_cast<std::int64_t>(i) * width);
  }
}

feature_store::table& feature_store::of(const std::shared_ptr<const dataset>& source, const model& net,
                                        const tensors_ref& weights) {
  const std::lock_guard lock(guard_);
  const auto digest = weights_digest(weights);
  auto& table = tables_[{source.get(), net.identity(), digest}];
  if (table.source_)
    return table;
  table.source_ = source;
  const auto rows = source->files_rows() * std::max<std::int64_t>(std::ssize(source->transforms), 1);
  table.features_ = at::empty({rows, net.feature_width()}, at::kFloat);
  table.known_.assign(at_row(rows), 0);
  if (!folder_.empty())
    open(table, *source, net.identity(), digest);
  return table;
}

/// Digest of the weights. It is computed once per tensor map, because every round sends the same frozen weights.
digest128 feature_store::weights_digest(const tensors_ref& weights) {
  auto& known = digests_[weights.get()];
  if (!known.first)
    known = {weights, digest_of(*weights)};
  return known.second;
}

void feature_store::open(table& opened, const dataset& source, const std::string& net, const digest128& weights) {
  run_digest name;
  name.add(content_of(source));
  name.add(digest_of(std::as_bytes(std::span(net))));
  name.add(weights);
  opened.file_ = (folder_ / (hex_text(name.value()) + ".safetensors")).string();
  if (std::filesystem::exists(opened.file_))
    record_damage(read(opened));
}

void feature_store::record_damage(const diagnostics& damage) {
  const std::lock_guard lock(damage_guard_);
  append(damaged_, damage);
}

diagnostics feature_store::damaged() const {
  const std::lock_guard lock(damage_guard_);
  return damaged_;
}

diagnostics feature_store::read(table& into) {
  const auto kept = read_checksummed_tensors(into.file_);
  if (!kept)
    return kept.error();
  const auto *features = kept->find(features_name), *known = kept->find(known_name);
  const auto rows = std::ssize(into.known_);
  if (!features || !known || features->sizes() != into.features_.sizes() || features->scalar_type() != at::kFloat ||
      known->numel() != rows || known->scalar_type() != at::kByte)
    return {{into.file_, "the file holds something other than features of this net and these rows"}};
  into.features_ = features->clone();
  std::copy_n(known->const_data_ptr<std::uint8_t>(), rows, into.known_.begin());
  return {};
}

void feature_store::save() {
  const std::lock_guard lock(guard_);
  if (folder_.empty())
    return;
  std::filesystem::create_directories(folder_);
  for (auto& [key, table] : tables_) {
    if (!table.changed_)
      continue;
    tensor_map tensors;
    tensors.put(features_name, table.features_);
    tensors.put(known_name, at::from_blob(table.known_.data(), {std::ssize(table.known_)}, at::kByte).clone());
    write_checksummed_tensors(table.file_, tensors);
    table.changed_ = false;
  }
}

} // namespace mneme
