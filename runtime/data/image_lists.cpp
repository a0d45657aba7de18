#include "runtime/data/image_lists.hpp"
#include "runtime/base/disk_file.hpp"
#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>
namespace mneme {
namespace {

constexpr std::uint64_t list_bytes_max = std::uint64_t{256} << 20;
constexpr std::size_t list_diagnostics_max = 20;
constexpr std::int32_t labels_max = 100'000;

struct listed_image {
  std::string name{};
  std::int32_t label = 0;
};

/// Parses a line. Returns the image that it names, or an error text.
tl::expected<listed_image, std::string> parse_line(std::string_view line) {
  const auto space = line.find_last_of(" \t");
  if (space == std::string_view::npos)
    return tl::unexpected(std::string("expected a path, a space and a label"));
  listed_image image;
  const auto number = line.substr(space + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), image.label);
  if (error != std::errc{} || end != number.data() + number.size() || image.label < 0 || image.label >= labels_max)
    return tl::unexpected(fmt::format("'{}' is not a label; expected a whole number from 0", number));
  const std::filesystem::path path(line.substr(0, line.find_last_not_of(" \t", space) + 1));
  if (path.empty() || path.is_absolute() ||
      std::any_of(path.begin(), path.end(), [](const auto& part) { return part == ".."; }))
    return tl::unexpected(
        fmt::format("'{}' is outside the data set's folder; expected a path below it", path.string()));
  image.name = path.string();
  return image;
}

void read_list(const image_list& list, const std::filesystem::path& folder, std::vector<image_entry>& into,
               diagnostics& errors) {
  const auto text = text_of_file(list.file, list_bytes_max);
  if (!text) {
    errors.push_back(text.error().front());
    return;
  }
  std::map<std::string, std::int32_t> labels; // label of each path
  std::string_view left = *text;
  for (std::size_t number = 1; !left.empty(); ++number) {
    auto line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(line.size() + 1, left.size()));
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    if (line.empty())
      continue;
    const auto image = parse_line(line);
    std::string text_of_line = image ? "" : image.error();
    if (image && !labels.try_emplace(image->name, image->label).second)
      text_of_line = fmt::format("'{}' is listed twice", image->name);
    if (!text_of_line.empty() && errors.size() < list_diagnostics_max)
      errors.push_back({fmt::format("{}:{}", list.file.string(), number), text_of_line});
  }
  if (labels.empty() && errors.empty())
    errors.push_back({list.file.string(), "lists no images; expected lines of a path and a label"});
  for (const auto& [name, label] : labels)
    into.push_back({folder / name, label, list.domain});
}

} // namespace

expected<std::vector<image_entry>> read_image_lists(const std::vector<image_list>& lists,
                                                    const std::filesystem::path& folder) {
  std::vector<image_entry> entries;
  diagnostics errors;
  for (const auto& list : lists)
    read_list(list, folder, entries, errors);
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  return entries;
}

} // namespace mneme
