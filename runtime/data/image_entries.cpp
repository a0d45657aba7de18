#include "runtime/data/image_entries.hpp"
#include "runtime/base/available_memory.hpp"
#include "runtime/base/file_ending.hpp"
#include "runtime/base/new_tensor.hpp"
#include "runtime/data/image_file.hpp"
#include "runtime/data/resample.hpp"
#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <future>
#include <thread>
namespace mneme {
namespace {

using std::filesystem::path;

constexpr std::size_t diagnostics_max = 20;

bool is_jpeg(const path& file) {
  const auto ending = file_ending(file);
  return ending == ".jpg" || ending == ".jpeg";
}
bool is_png(const path& file) { return file_ending(file) == ".png"; }

/// Resizes a box of planes [3, H, W] to `size` and returns `part` of the result.
at::Tensor resize_box(const at::Tensor& planes, resampling method, const pixel_box& box,
                      std::array<std::int64_t, 2> size, const pixel_box& part) {
  const auto bytes = planes.contiguous();
  auto resized = new_tensor({3, part.height, part.width}, at::kByte);
  resampler(method, box, size[0], size[1], part)
      .apply(bytes.const_data_ptr<std::uint8_t>(), {3, bytes.size(1), bytes.size(2)},
             resized.mutable_data_ptr<std::uint8_t>());
  return resized;
}

/// Fits an image to [3, side_px, side_px]; see image_fit.
at::Tensor fit_image(const at::Tensor& planes, std::int64_t side_px, image_fit fit) {
  const auto height = planes.size(1), width = planes.size(2), shorter = std::min(height, width);
  if (fit == image_fit::center_bicubic) {
    const auto [lines, pixels] = resize_spec{.resize = (8 * side_px + 6) / 7}.resized(height, width);
    return resize_box(planes, resampling::bicubic, {.height = height, .width = width}, {lines, pixels},
                      middle_of(lines, pixels, side_px, side_px));
  }
  const auto box = fit == image_fit::center ? middle_of(height, width, shorter, shorter)
                                            : pixel_box{.height = height, .width = width};
  return resize_box(planes, resampling::bilinear, box, {side_px, side_px}, {.height = side_px, .width = side_px});
}

/// Reads an image and fits it to [3, side_px, side_px].
expected<at::Tensor> read_fitted(const path& file, std::int64_t side_px, image_fit fit) {
  // Much larger images are rejected before memory is allocated, other sizes after decoding.
  constexpr std::int64_t times_larger = 64;
  const auto pixels_max = fit == image_fit::exact ? times_larger * side_px * side_px : image_pixels_max;
  auto planes = read_image(file, pixels_max);
  if (!planes)
    return planes;
  const auto height = planes->size(1), width = planes->size(2);
  if (fit != image_fit::exact)
    return fit_image(*planes, side_px, fit);
  if (height != side_px || width != side_px)
    return failed(
        file.string(),
        fmt::format("the image has {}x{} pixels, but this data set has {}x{}: is it the file of another data set?",
                    width, height, side_px, side_px));
  return planes;
}

/// Reads an image that must have exactly this size, without resizing.
expected<at::Tensor> of_equal_size(const path& file, const image_size& size) {
  constexpr std::int64_t times_larger = 64; // larger images are rejected before memory is allocated
  const auto pixels_max = std::max<std::int64_t>(times_larger * size.height * size.width, 1 << 16);
  auto planes = read_image(file, pixels_max);
  if (planes && (planes->size(1) != size.height || planes->size(2) != size.width))
    return failed(file.string(), fmt::format("the image has {}x{} pixels, but {} has {}x{}; expected one size, or "
                                             "data.side = {}, which resizes all to squares",
                                             planes->size(2), planes->size(1), size.like.string(), size.width,
                                             size.height, std::clamp<std::int64_t>(size.height, 8, 1024)));
  return planes;
}

/// Calls work(i) for each i < count, on all cores and in any order.
template <class Work>
void on_all_cores(std::size_t count, const Work& work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (auto i = next++; i < count; i = next++)
      work(i);
  };
  std::vector<std::future<void>> others; // futures rethrow the exceptions of their threads
  const auto cores = std::max(std::thread::hardware_concurrency(), 1U);
  for (std::size_t i = 1; i < std::min<std::size_t>(cores, count); ++i)
    others.push_back(std::async(std::launch::async, run));
  run();
  for (auto& task : others)
    task.get();
}

/// The files of a folder for which `wanted` returns true, sorted by name. Fails if there are none.
/// @param kinds file types, for the message
expected<std::vector<path>> files_in(const path& folder, bool (*wanted)(const path&), const char* kinds) {
  std::vector<path> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (wanted(entry->path()))
      paths.push_back(entry->path());
  if (error)
    return failed(folder.string(), fmt::format("cannot be read: {}", error.message()));
  if (paths.empty())
    return failed(folder.string(), fmt::format("holds no {} files: fetch the data set again", kinds));
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// A table with the labels, domains and row numbers of the images within `limits`, but without pixels.
image_table cached_image_table(const std::vector<image_entry>& entries, row_limits limits, std::int64_t classes,
                               bool has_domains) {
  image_table table;
  row_filter filter(limits, classes);
  for (std::size_t row = 0; row < entries.size() && (has_domains || !filter.done()); ++row)
    if (filter.keep(entries[row].label, entries[row].domain)) {
      table.file_rows.push_back(static_cast<std::int64_t>(row));
      table.labels.push_back(entries[row].label);
      if (has_domains)
        table.domains.push_back(entries[row].domain);
    }
  return table;
}

/// Returns the first diagnostics, followed by a diagnostic with the number of other files that failed.
diagnostics first_findings(const std::vector<diagnostics>& findings, const path& folder) {
  diagnostics first;
  std::size_t failed_files = 0;
  for (const auto& of_file : findings) {
    if (of_file.empty())
      continue;
    if (++failed_files <= diagnostics_max)
      first.push_back(of_file.front());
  }
  if (failed_files > diagnostics_max)
    first.push_back({folder.string(), fmt::format("{} more images of the data set cannot be used; the first {} are "
                                                  "named above",
                                                  failed_files - diagnostics_max, diagnostics_max)});
  return first;
}

/// Reads the pixels of the images in `table`. @param read returns the image of a file as [3, height, width]
template <class Read>
expected<image_table> table_of(const std::vector<image_entry>& entries, image_table table,
                               std::array<std::int64_t, 2> size, const Read& read) {
  const auto row_bytes = 3 * size[0] * size[1];
  if (const auto room = available_memory(); table.size() > 0 && row_bytes > room.bytes / table.size())
    return failed(entries.front().file.parent_path().string(),
                  fmt::format("{} images of {} bytes take more than the {} bytes that are {}", table.size(), row_bytes,
                              room.bytes, room.source));
  table.images = new_tensor({table.size(), 3, size[0], size[1]}, at::kByte);
  auto* const pixels = table.images.mutable_data_ptr<std::uint8_t>();
  std::vector<diagnostics> findings(table.labels.size());
  on_all_cores(findings.size(), [&](std::size_t i) {
    const auto image = read(entries[static_cast<std::size_t>(table.file_rows[i])].file);
    if (image)
      std::copy_n(image->contiguous().template const_data_ptr<std::uint8_t>(), row_bytes,
                  pixels + static_cast<std::int64_t>(i) * row_bytes);
    else
      findings[i] = image.error();
  });
  const auto folder = entries.empty() ? path() : entries.front().file.parent_path();
  if (auto first = first_findings(findings, folder); !first.empty())
    return tl::unexpected(std::move(first));
  if (table.labels.size() == entries.size())
    table.file_rows.clear();
  return table;
}

} // namespace

expected<std::vector<path>> jpegs_in(const path& folder) { return files_in(folder, is_jpeg, "JPEG"); }

expected<std::vector<path>> image_files_in(const path& folder) {
  return files_in(
      folder, [](const path& file) { return is_jpeg(file) || is_png(file); }, "JPEG or PNG");
}

expected<std::vector<image_entry>> image_entries_in(const std::vector<path>& classes) {
  std::vector<image_entry> entries;
  diagnostics errors;
  for (std::size_t label = 0; label < classes.size(); ++label) {
    const auto of_class = jpegs_in(classes[label]);
    if (!of_class) {
      errors.push_back(of_class.error().front());
      continue;
    }
    for (const auto& file : *of_class)
      entries.push_back({file, static_cast<std::int32_t>(label)});
  }
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  return entries;
}

image_split split_by_place(const std::vector<image_entry>& entries,
                           const std::function<bool(std::size_t place)>& is_test) {
  image_split split;
  std::size_t place = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    place = i > 0 && entries[i].label == entries[i - 1].label ? place + 1 : 0;
    (is_test(place) ? split.test : split.train).push_back(entries[i]);
  }
  return split;
}

std::vector<std::string> folder_names(const std::vector<std::filesystem::path>& folders) {
  std::vector<std::string> names;
  for (const auto& folder : folders)
    names.push_back(folder.filename().string());
  return names;
}

bool is_wordnet_id(std::string_view name) {
  const auto digit = [](char c) { return '0' <= c && c <= '9'; };
  return name.size() == 9 && name[0] == 'n' && std::all_of(name.begin() + 1, name.end(), digit);
}

std::vector<path> wordnet_folders(const path& folder) {
  std::vector<path> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (is_wordnet_id(entry->path().filename().string()))
      paths.push_back(entry->path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

expected<image_size> find_image_size(const std::vector<image_entry>& entries, std::int64_t side_px) {
  if (side_px > 0)
    return image_size{.height = side_px, .width = side_px};
  diagnostics errors;
  for (const auto& [file, label, domain] : entries) {
    const auto planes = read_image(file);
    if (planes)
      return image_size{.height = planes->size(1), .width = planes->size(2), .like = file};
    append(errors, planes.error());
    if (errors.size() >= diagnostics_max)
      break;
  }
  return tl::unexpected(std::move(errors));
}

expected<image_table> read_images(const std::vector<image_entry>& entries, row_limits limits, std::int64_t classes,
                                  const image_size& size, bool has_domains) {
  return table_of(entries, cached_image_table(entries, limits, classes, has_domains), {size.height, size.width},
                  [&](const path& file) {
                    return size.like.empty() ? read_fitted(file, size.height, image_fit::center)
                                             : of_equal_size(file, size);
                  });
}

expected<image_table> read_fitted_images(const std::vector<image_entry>& entries, row_limits limits,
                                         std::int64_t classes, std::int64_t side_px, image_fit fit) {
  const bool has_domains =
      std::any_of(entries.begin(), entries.end(), [](const image_entry& single) { return single.domain > 0; });
  return table_of(entries, cached_image_table(entries, limits, classes, has_domains), {side_px, side_px},
                  [&](const path& file) { return read_fitted(file, side_px, fit); });
}

} // namespace mneme
