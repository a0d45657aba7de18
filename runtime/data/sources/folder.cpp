// folder: user data with one image folder per class, as for torchvision's ImageFolder. Optional folder levels above the
// classes define parts (train, test) and domains.
#include "runtime/base/new_tensor.hpp"
#include "runtime/data/data_sources.hpp"
#include "runtime/data/image_tree.hpp"
#include "runtime/data/splits.hpp"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
namespace mneme {
namespace {

using std::filesystem::path;

/// Selects images by index.
std::vector<image_entry> picked(const std::vector<image_entry>& entries, const std::vector<std::int64_t>& places) {
  std::vector<image_entry> chosen;
  for (const auto place : places)
    chosen.push_back(entries[static_cast<std::size_t>(place)]);
  return chosen;
}

/// Replaces row numbers with those in the part from which the rows were drawn.
void renumber(image_table& table, const std::vector<std::int64_t>& drawn) {
  if (table.file_rows.empty())
    table.file_rows = drawn;
  else
    for (auto& row : table.file_rows)
      row = drawn[static_cast<std::size_t>(row)];
}

/// True if the red, green and blue values are equal in all images.
bool is_gray(const at::Tensor& images) {
  const auto plane = images.size(2) * images.size(3);
  const auto* at = images.const_data_ptr<std::uint8_t>();
  for (std::int64_t row = 0; row < images.size(0); ++row, at += 3 * plane)
    if (std::memcmp(at, at + plane, static_cast<std::size_t>(plane)) != 0 ||
        std::memcmp(at, at + 2 * plane, static_cast<std::size_t>(plane)) != 0)
      return false;
  return true;
}

/// [N, 3, H, W] -> [N, 1, H, W]: luma of ITU-R BT.601 in integers, equal to Pillow's convert("L").
at::Tensor in_gray(const at::Tensor& images) {
  const auto plane = images.size(2) * images.size(3);
  auto gray = new_tensor({images.size(0), 1, images.size(2), images.size(3)}, at::kByte);
  const auto* from = images.const_data_ptr<std::uint8_t>();
  auto* to = gray.mutable_data_ptr<std::uint8_t>();
  for (std::int64_t row = 0; row < images.size(0); ++row, from += 3 * plane, to += plane)
    for (std::int64_t i = 0; i < plane; ++i)
      to[i] = static_cast<std::uint8_t>(
          (19595U * from[i] + 38470U * from[plane + i] + 7471U * from[2 * plane + i] + 0x8000U) >> 16U);
  return gray;
}

expected<raw_data> load_folder(const data_section& data, const std::vector<path>& roots, std::uint64_t seed) {
  const auto root = image_root(data, roots);
  if (!root)
    return tl::unexpected(root.error());
  auto tree = list_images(*root);
  if (!tree)
    return tl::unexpected(tree.error());
  const auto& classes = tree->classes;
  const bool has_domains = !classes.domains.empty();
  if (auto errors = validate_test_share(!tree->test.empty(), data, classes.where); !errors.empty())
    return tl::unexpected(std::move(errors));
  random_split drawn;
  if (tree->test.empty()) {
    auto parts = split_off_test_rows(part_of(tree->train, has_domains), data.test_share, seed, classes);
    if (!parts)
      return tl::unexpected(parts.error());
    drawn = std::move(*parts);
    tree->test = picked(tree->train, drawn.test);
    tree->train = picked(tree->train, drawn.train);
  }
  if (auto absent = absent_classes(part_of(tree->train, has_domains), part_of(tree->test, has_domains), classes);
      !absent.empty())
    return tl::unexpected(std::move(absent));
  const auto size = find_image_size(tree->train, data.side);
  if (!size)
    return tl::unexpected(size.error());
  const auto read = [&](const std::vector<image_entry>& entries, row_limits limits) {
    return read_images(entries, limits, classes.count, *size, has_domains);
  };
  auto rows = with_splits(
      {.name = "folder", .classes = classes.count, .domain_names = classes.domains, .class_names = classes.names},
      read(tree->train, train_limits(data)), read(tree->test, test_limits(data)));
  if (!rows)
    return rows;
  if (!drawn.test.empty()) {
    renumber(rows->train, drawn.train);
    renumber(rows->test, drawn.test);
    rows->drawn_rows = std::move(drawn.test);
  }
  if (data.channels == 1 || (data.channels == 0 && is_gray(rows->train.images) && is_gray(rows->test.images)))
    for (auto* table : {&rows->train, &rows->test})
      table->images = in_gray(table->images);
  const auto channels = static_cast<std::size_t>(rows->train.images.size(1));
  rows->mean.assign(channels, 0.5);
  rows->deviation.assign(channels, 0.5);
  return rows;
}

diagnostics find_folder_warnings(const data_section& data, const std::vector<path>& roots) {
  const auto root = image_root(data, roots);
  auto tree = root ? list_images(*root) : expected<image_tree>(tl::unexpected(root.error()));
  return tree ? std::move(tree->warnings) : diagnostics{};
}

const source_registration folder_line{
    {.name = "folder",
     .summary = "your own images in data.root: train/CLASS/*.{png,jpg,jpeg} and test/CLASS/..., or CLASS/... with "
                "data.test_share; domains are one folder level above the classes; docs/data.md",
     .load = load_folder,
     .find_warnings = find_folder_warnings,
     .image_folders = true,
     .has_domains = true,
     .is_own = true}};

} // namespace
} // namespace mneme
