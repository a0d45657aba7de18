#include "runtime/data/photographs.hpp"
#include "runtime/base/available_memory.hpp"
#include "runtime/base/new_tensor.hpp"
#include "runtime/data/jpeg.hpp"
#include "runtime/data/png_picture.hpp"
#include "runtime/data/resample.hpp"
#include "runtime/data/resize.hpp"
#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <future>
#include <thread>
namespace mneme {
namespace {

using std::filesystem::path;

constexpr std::size_t diagnostics_max = 20;

/// The ending of its name in small letters: ".jpg".
std::string ending_of(const path& file) {
  auto ending = file.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return ending;
}
bool is_jpeg(const path& file) {
  const auto ending = ending_of(file);
  return ending == ".jpg" || ending == ".jpeg";
}
bool is_png(const path& file) { return ending_of(file) == ".png"; }

/// [3, side_px, side_px] of planes [3, H, W], whose shorter side is brought to `shorter_px` first
at::Tensor middle_by_cubics(const at::Tensor& planes, std::int64_t shorter_px, std::int64_t side_px) {
  const auto bytes = planes.contiguous();
  const auto height = bytes.size(1), width = bytes.size(2);
  const auto [lines, pixels] = shown_size{.resize = shorter_px}.resized(height, width);
  auto picture = new_tensor({3, side_px, side_px}, at::kByte);
  resampler(resampling::bicubic, {.height = height, .width = width}, lines, pixels,
            middle_of(lines, pixels, side_px, side_px))
      .apply(bytes.const_data_ptr<std::uint8_t>(), {3, height, width}, picture.mutable_data_ptr<std::uint8_t>());
  return picture;
}

/// [3, side_px, side_px]
expected<at::Tensor> fitted(const path& file, std::int64_t side_px, photograph_fit fit) {
  const bool is_middle = fit == photograph_fit::centre || fit == photograph_fit::centre_bicubic;
  const auto whole_px = is_middle ? (8 * side_px + 6) / 7 : fit == photograph_fit::whole ? side_px : 0;
  // A picture of another size is refused by its size below; one much larger, before it takes memory.
  constexpr std::int64_t times_larger = 64;
  const auto pixels_max = fit == photograph_fit::exact ? times_larger * side_px * side_px : photograph_pixels_max;
  auto planes = is_png(file) ? read_png(file, pixels_max) : read_jpeg(file, whole_px, pixels_max);
  if (!planes)
    return planes;
  const auto height = planes->size(1), width = planes->size(2);
  if (fit == photograph_fit::centre_bicubic)
    return middle_by_cubics(*planes, whole_px, side_px);
  if (fit == photograph_fit::centre) {
    const auto square = std::max<std::int64_t>(std::min(height, width) * 7 / 8, 1);
    const auto middle = planes->narrow(1, (height - square) / 2, square).narrow(2, (width - square) / 2, square);
    return resized_bilinear(middle.unsqueeze(0), side_px, side_px)[0];
  }
  if (height == side_px && width == side_px)
    return planes;
  if (fit == photograph_fit::exact)
    return failed(file.string(), fmt::format("the picture has {}x{} pixels, but this data set has {}x{}: is it the "
                                             "file of another data set?",
                                             width, height, side_px, side_px));
  return resized_bilinear(planes->unsqueeze(0), side_px, side_px)[0];
}

/// The picture as it is, if it has the size of all.
expected<at::Tensor> of_equal_size(const path& file, const picture_size& size) {
  constexpr std::int64_t times_larger = 64; // more is refused before it takes memory
  const auto pixels_max = std::max<std::int64_t>(times_larger * size.height * size.width, 1 << 16);
  auto planes = is_png(file) ? read_png(file, pixels_max) : read_jpeg(file, 0, pixels_max);
  if (planes && (planes->size(1) != size.height || planes->size(2) != size.width))
    return failed(file.string(), fmt::format("the picture has {}x{} pixels, and {} has {}x{}; expected one size, or "
                                             "data.side = {}, which brings all to squares",
                                             planes->size(2), planes->size(1), size.like.string(), size.width,
                                             size.height, std::clamp<std::int64_t>(size.height, 8, 1024)));
  return planes;
}

/// Calls work(i) for i below `count`, on all cores; in which order does not matter.
template <class Work>
void on_all_cores(std::size_t count, const Work& work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (auto i = next++; i < count; i = next++)
      work(i);
  };
  std::vector<std::future<void>> others; // futures rethrow what their threads throw
  const auto cores = std::max(std::thread::hardware_concurrency(), 1U);
  for (std::size_t i = 1; i < std::min<std::size_t>(cores, count); ++i)
    others.push_back(std::async(std::launch::async, run));
  run();
  for (auto& task : others)
    task.get();
}

/// Files that are `wanted`, by name. @param kinds what they are called where there are none
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

/// Labels, domains and file rows of the pictures that `limits` keep.
image_table kept_pictures(const std::vector<photograph>& photographs, row_limits limits, std::int64_t classes,
                          bool has_domains) {
  image_table table;
  row_filter filter(limits, classes);
  for (std::size_t row = 0; row < photographs.size() && (has_domains || !filter.done()); ++row)
    if (filter.keep(photographs[row].label, photographs[row].domain)) {
      table.file_rows.push_back(static_cast<std::int64_t>(row));
      table.labels.push_back(photographs[row].label);
      if (has_domains)
        table.domains.push_back(photographs[row].domain);
    }
  return table;
}

/// Reads what `table` names of `photographs`. @param read a file to [3, height, width]
template <class Read>
expected<image_table> table_of(const std::vector<photograph>& photographs, image_table table,
                               std::array<std::int64_t, 2> size, const Read& read) {
  const auto row_bytes = 3 * size[0] * size[1];
  if (const auto room = available_memory(); table.size() > 0 && row_bytes > room.bytes / table.size())
    return failed(photographs.front().file.parent_path().string(),
                  fmt::format("{} pictures of {} bytes take more than the {} bytes that are {}", table.size(),
                              row_bytes, room.bytes, room.source));
  table.images = new_tensor({table.size(), 3, size[0], size[1]}, at::kByte);
  auto* const pixels = table.images.mutable_data_ptr<std::uint8_t>();
  std::vector<diagnostics> wrong(table.labels.size());
  on_all_cores(wrong.size(), [&](std::size_t i) {
    const auto image = read(photographs[static_cast<std::size_t>(table.file_rows[i])].file);
    if (image)
      std::copy_n(image->contiguous().template const_data_ptr<std::uint8_t>(), row_bytes,
                  pixels + static_cast<std::int64_t>(i) * row_bytes);
    else
      wrong[i] = image.error();
  });
  diagnostics named;
  for (const auto& problems : wrong)
    if (!problems.empty() && named.size() < diagnostics_max)
      named.push_back(problems.front());
  if (!named.empty())
    return tl::unexpected(std::move(named));
  if (table.labels.size() == photographs.size())
    table.file_rows.clear();
  return table;
}

} // namespace

expected<std::vector<path>> jpegs_in(const path& folder) { return files_in(folder, is_jpeg, "JPEG"); }

expected<std::vector<path>> pictures_in(const path& folder) {
  return files_in(
      folder, [](const path& file) { return is_jpeg(file) || is_png(file); }, "JPEG or PNG");
}

expected<std::vector<photograph>> photographs_in(const std::vector<path>& classes) {
  std::vector<photograph> photographs;
  diagnostics wrong;
  for (std::size_t label = 0; label < classes.size(); ++label) {
    const auto of_class = jpegs_in(classes[label]);
    if (!of_class) {
      wrong.push_back(of_class.error().front());
      continue;
    }
    for (const auto& file : *of_class)
      photographs.push_back({file, static_cast<std::int32_t>(label)});
  }
  if (!wrong.empty())
    return tl::unexpected(std::move(wrong));
  return photographs;
}

photograph_split split_by_place(const std::vector<photograph>& photographs,
                                const std::function<bool(std::size_t place)>& is_test) {
  photograph_split split;
  std::size_t place = 0;
  for (std::size_t i = 0; i < photographs.size(); ++i) {
    place = i > 0 && photographs[i].label == photographs[i - 1].label ? place + 1 : 0;
    (is_test(place) ? split.test : split.train).push_back(photographs[i]);
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

expected<picture_size> size_of_pictures(const path& first, std::int64_t side_px) {
  if (side_px > 0)
    return picture_size{.height = side_px, .width = side_px};
  const auto planes = is_png(first) ? read_png(first, photograph_pixels_max) : read_jpeg(first, 0);
  if (!planes)
    return tl::unexpected(planes.error());
  return picture_size{.height = planes->size(1), .width = planes->size(2), .like = first};
}

expected<image_table> read_pictures(const std::vector<photograph>& photographs, row_limits limits, std::int64_t classes,
                                    const picture_size& size, bool has_domains) {
  return table_of(photographs, kept_pictures(photographs, limits, classes, has_domains), {size.height, size.width},
                  [&](const path& file) {
                    return size.like.empty() ? fitted(file, size.height, photograph_fit::centre)
                                             : of_equal_size(file, size);
                  });
}

expected<image_table> read_photographs(const std::vector<photograph>& photographs, row_limits limits,
                                       std::int64_t classes, std::int64_t side_px, photograph_fit fit) {
  const bool has_domains =
      std::any_of(photographs.begin(), photographs.end(), [](const photograph& single) { return single.domain > 0; });
  return table_of(photographs, kept_pictures(photographs, limits, classes, has_domains), {side_px, side_px},
                  [&](const path& file) { return fitted(file, side_px, fit); });
}

} // namespace mneme
