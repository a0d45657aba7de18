#include "runtime/data/idx.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/new_tensor.hpp"
#include "runtime/data/byte_stream.hpp"
#include "runtime/data/splits.hpp"
#include <array>
#include <fmt/format.h>
namespace mneme {
namespace {

// Shapes: N rows, H height, W width.

constexpr std::uint32_t labels_magic = 0x801, images_magic = 0x803; // file types: unsigned bytes with 1 or 3 dimensions

/// Reads the next number of a header: four bytes, big-endian.
expected<std::uint32_t> next_number(byte_stream& stream) {
  std::array<std::uint8_t, 4> bytes{};
  if (auto read = stream.read(bytes); !read)
    return tl::unexpected(read.error());
  std::uint32_t number = 0;
  for (const auto byte : bytes)
    number = number << 8 | byte;
  return number;
}

/// Opens an idx file and reads its header: magic, then `Dimensions` sizes.
template <std::size_t Dimensions>
expected<std::array<std::uint32_t, Dimensions>> read_header(byte_stream& stream, std::uint32_t magic) {
  const auto value = next_number(stream);
  if (!value)
    return tl::unexpected(value.error());
  if (*value != magic)
    return failed(
        stream.place(0),
        fmt::format("the file begins with {:#010x}, but an idx{} file of unsigned bytes begins with {:#010x}{}", *value,
                    Dimensions, magic,
                    *value == (magic ^ images_magic ^ labels_magic)
                        ? ": are images and labels swapped?"
                        : ": it is another format, or damaged; fetch it again"));
  std::array<std::uint32_t, Dimensions> sizes{};
  for (auto& size : sizes) {
    const auto number = next_number(stream);
    if (!number)
      return tl::unexpected(number.error());
    size = *number;
  }
  return sizes;
}

/// Rejects a header that states more data than the file can hold, before memory is allocated.
expected<void> check_claim(const byte_stream& stream, std::uint64_t rows, std::uint64_t row_bytes) {
  const auto claimed = stream.position() + rows * row_bytes;
  if (rows == 0)
    return failed(stream.place(4), "the header states 0 rows: fetch the file again");
  if (claimed > stream.content_bytes_max())
    return failed(stream.place(4),
                  fmt::format("the header states {} rows of {} bytes, {} bytes in all, but the file holds at most {}: "
                              "it is truncated or its header is damaged, fetch it again",
                              rows, row_bytes, claimed, stream.content_bytes_max()));
  return {};
}

/// Reads the number of rows from a header.
template <std::size_t Dimensions>
expected<std::uint32_t> rows_stated_in(byte_stream& stream, std::uint32_t magic) {
  return read_header<Dimensions>(stream, magic).map([](const auto& sizes) { return sizes.front(); });
}

tl::unexpected<diagnostics> not_together(const byte_stream& images, std::int64_t of_images, std::int64_t of_labels) {
  return failed(images.place(4), fmt::format("the file states {} images, but its labels file {} labels: the two do not "
                                             "belong together, fetch both again",
                                             of_images, of_labels));
}

/// Compares the row counts of both headers before memory is allocated for labels, because a compressed file can claim
/// thousands of labels per byte. Other errors are found when the files are read.
expected<void> check_same_rows(const std::filesystem::path& images, const std::filesystem::path& labels,
                               const idx_layout& layout) {
  auto of_images = byte_stream::open(images), of_labels = byte_stream::open(labels);
  if (!of_images || !of_labels)
    return {};
  const auto pictures = rows_stated_in<3>(*of_images, images_magic);
  const auto classes = rows_stated_in<1>(*of_labels, labels_magic);
  if (!pictures || !classes)
    return {};
  const auto row_bytes = static_cast<std::uint64_t>(layout.height * layout.width);
  if (auto held = check_claim(*of_labels, *classes, 1); !held)
    return held;
  if (auto held = check_claim(*of_images, *pictures, row_bytes); !held)
    return held;
  if (*pictures != *classes)
    return not_together(*of_images, *pictures, *classes);
  if (*classes > layout.rows_max)
    return failed(of_labels->place(4), fmt::format("the header states {} rows, but data sets in this format have at "
                                                   "most {}: it is damaged, fetch the file again",
                                                   *classes, layout.rows_max));
  return {};
}

} // namespace

expected<std::vector<std::int32_t>> read_idx_labels(const std::filesystem::path& file, std::int64_t classes) {
  auto stream = byte_stream::open(file);
  if (!stream)
    return tl::unexpected(stream.error());
  const auto sizes = read_header<1>(*stream, labels_magic);
  if (!sizes)
    return tl::unexpected(sizes.error());
  const std::uint64_t rows = sizes->front();
  if (auto claim = check_claim(*stream, rows, 1); !claim)
    return tl::unexpected(claim.error());
  const auto begin = stream->position();
  std::vector<std::uint8_t> bytes(rows);
  if (auto read = stream->read(bytes).and_then([&] { return stream->expect_end(); }); !read)
    return tl::unexpected(read.error());
  for (std::size_t row = 0; row < rows; ++row)
    if (bytes[row] >= classes)
      return failed(stream->place(begin + row),
                    fmt::format("row {} has label {}, but this data set has labels 0 to {}: "
                                "is it the file of another data set?",
                                row, bytes[row], classes - 1));
  return std::vector<std::int32_t>(bytes.begin(), bytes.end());
}

expected<at::Tensor> read_idx_images(const std::filesystem::path& file, const idx_layout& layout,
                                     std::int64_t rows_stated, std::int64_t rows) {
  MNEME_CHECK(0 < rows && rows <= rows_stated, rows, rows_stated);
  auto stream = byte_stream::open(file);
  if (!stream)
    return tl::unexpected(stream.error());
  const auto sizes = read_header<3>(*stream, images_magic);
  if (!sizes)
    return tl::unexpected(sizes.error());
  const auto [stated, height, width] = *sizes;
  if (height != layout.height || width != layout.width)
    return failed(stream->place(8), fmt::format("the images are {}x{}, but this data set has {}x{}: is it the file of "
                                                "another data set?",
                                                height, width, layout.height, layout.width));
  if (auto claim = check_claim(*stream, stated, std::uint64_t{height} * width); !claim)
    return tl::unexpected(claim.error());
  if (stated != rows_stated)
    return not_together(*stream, stated, rows_stated);
  auto images = new_tensor({rows, 1, layout.height, layout.width}, at::kByte); // [rows, 1, H, W]
  const std::span pixels(images.mutable_data_ptr<std::uint8_t>(), static_cast<std::size_t>(images.numel()));
  if (auto read = stream->read(pixels); !read)
    return tl::unexpected(read.error());
  if (auto end = rows == rows_stated ? stream->expect_end() : expected<void>{}; !end)
    return tl::unexpected(end.error());
  return images;
}

expected<image_table> read_idx(const std::filesystem::path& images, const std::filesystem::path& labels,
                               const idx_layout& layout, row_limits limits) {
  if (auto same = check_same_rows(images, labels, layout); !same)
    return tl::unexpected(same.error());
  auto all_labels = read_idx_labels(labels, layout.classes);
  if (!all_labels)
    return tl::unexpected(all_labels.error());
  row_filter filter(limits, layout.classes);
  std::size_t rows = 0; // number of rows up to and including the last selected one
  for (std::size_t row = 0; row < all_labels->size() && !filter.done(); ++row)
    if (filter.keep((*all_labels)[row]))
      rows = row + 1;
  auto pixels = read_idx_images(images, layout, std::ssize(*all_labels), static_cast<std::int64_t>(rows));
  if (!pixels)
    return tl::unexpected(pixels.error());
  all_labels->resize(rows);
  return image_table{.images = std::move(*pixels), .labels = std::move(*all_labels)};
}

expected<raw_data> load_idx(const idx_set& set, const data_section& data,
                            const std::vector<std::filesystem::path>& roots) {
  const auto files = find_files(set.files, data, roots);
  if (!files)
    return tl::unexpected(files.error());
  auto loaded = with_splits({.name = set.files.data_set,
                             .classes = set.layout.classes,
                             .class_names = set.class_names,
                             .mean = {set.mean},
                             .deviation = {set.deviation}},
                            read_idx((*files)[0], (*files)[1], set.layout, train_limits(data)),
                            read_idx((*files)[2], (*files)[3], set.layout, test_limits(data)));
  if (loaded && data.transposed)
    for (auto* table : {&loaded->train, &loaded->test})
      table->images = table->images.transpose(2, 3).contiguous();
  return loaded;
}

} // namespace mneme
