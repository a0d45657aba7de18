#include "runtime/formats/array_file.hpp"
#include "runtime/base/available_memory.hpp"
#include "runtime/base/disk_file.hpp"
#include "runtime/base/file_ending.hpp"
#include "runtime/base/mapped_file.hpp"
#include "runtime/formats/safetensors_file.hpp"
#include "runtime/formats/zip_archive.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
namespace mneme {
namespace {

using std::filesystem::path;

bool is_among(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

diagnostic unknown_array(const std::string& file, const std::string& name, const std::vector<std::string>& names) {
  const auto meant = closest_match(name, names);
  return {file, fmt::format("has an unknown array '{}'; {}", name,
                            meant.empty() ? fmt::format("expected {}", fmt::join(names, ", "))
                                          : fmt::format("did you mean '{}'?", meant))};
}

/// Fails if the arrays exceed the available memory.
expected<void> fits_into_memory(const path& file, std::uint64_t bytes) {
  const auto room = available_memory();
  if (bytes <= static_cast<std::uint64_t>(std::max<std::int64_t>(room.bytes, 0)))
    return {};
  return failed(file.string(), fmt::format("takes {} bytes of memory, and {} are {}", bytes, room.bytes, room.source));
}

/// Maps a large array if its bytes in the file are its values in memory. Returns nullopt for other arrays.
std::optional<expected<npy_array>> map_npy(const path& file, std::span<const std::uint8_t> front, std::uint64_t bytes) {
  const auto header = bytes >= mapped_bytes_min ? npy_reader::header_of(front, bytes) : std::nullopt;
  if (!header || header->holds_texts || header->high_bytes_first || (header->by_columns && header->shape.size() > 1) ||
      header->begin % c10::elementSize(header->type) != 0 || header->type == at::kBool)
    return std::nullopt;
  auto values = map_tensor(file, header->begin, header->shape, header->type);
  if (!values)
    return failed(file.string(), values.error());
  return npy_array{.values = std::move(*values)};
}

expected<npy_array> read_npy(const path& file) {
  auto opened = disk_file::open(file);
  if (!opened)
    return tl::unexpected(opened.error());
  std::vector<std::uint8_t> piece(std::size_t{1} << 20);
  auto bytes = opened->read(piece);
  if (!bytes)
    return tl::unexpected(bytes.error());
  if (auto mapped = map_npy(file, std::span(piece).first(*bytes), opened->size_bytes()))
    return std::move(*mapped);
  if (auto room = fits_into_memory(file, opened->size_bytes()); !room)
    return tl::unexpected(room.error());
  npy_reader reader(opened->size_bytes());
  while (reader.feed({piece.data(), *bytes}) && *bytes > 0) {
    bytes = opened->read(piece);
    if (!bytes)
      return tl::unexpected(bytes.error());
  }
  auto array = reader.finish();
  if (!array)
    return failed(file.string(), array.error());
  return std::move(*array);
}

expected<named_arrays> read_siblings(const path& file, const std::vector<std::string>& names) {
  named_arrays arrays;
  diagnostics errors;
  for (const auto& sibling : array_files(file, names)) {
    const auto name = sibling.stem().string();
    if (arrays.contains(name))
      errors.push_back({sibling.string(), fmt::format("the array '{}' is in {}, too; expected one file per array", name,
                                                      arrays[name].place)});
    else if (auto array = read_npy(sibling))
      arrays[name] = {std::move(*array), sibling.string()};
    else
      append(errors, array.error());
  }
  if (arrays.empty() && errors.empty())
    return failed(file.string(),
                  fmt::format("no array file has this name; expected {}.npy", fmt::join(names, ".npy, ")));
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  return arrays;
}

expected<named_arrays> read_npz(const path& file, const std::vector<std::string>& names) {
  auto opened = disk_file::open(file);
  if (!opened)
    return tl::unexpected(opened.error());
  if (auto room = fits_into_memory(file, opened->size_bytes()); !room)
    return tl::unexpected(room.error());
  std::vector<std::uint8_t> bytes(opened->size_bytes());
  const auto read = opened->read(bytes);
  if (!read)
    return tl::unexpected(read.error());
  bytes.resize(*read);
  const auto room = static_cast<std::uint64_t>(std::max<std::int64_t>(available_memory().bytes, 0));
  const auto entries = zip_entries(bytes, room);
  if (!entries)
    return failed(opened->place(entries.error().byte), entries.error().text);
  named_arrays arrays;
  diagnostics errors;
  for (const auto& entry : *entries) {
    const auto name = entry.name.ends_with(".npy") ? entry.name.substr(0, entry.name.size() - 4) : entry.name;
    const auto place = fmt::format("{}: {}", file.string(), name);
    if (!is_among(name, names)) {
      errors.push_back(unknown_array(file.string(), name, names));
      continue;
    }
    npy_reader reader(entry.bytes);
    zip_pieces(bytes, entry, [&](std::span<const std::uint8_t> piece) { (void)reader.feed(piece); });
    if (auto array = reader.finish())
      arrays[name] = {std::move(*array), place};
    else
      errors.push_back({place, array.error()});
  }
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  return arrays;
}

/// Parses a JSON list of strings. Returns an empty list for any other text.
std::vector<std::string> listed_texts(const std::string& text) {
  std::vector<std::string> texts;
  const auto list = nlohmann::json::parse(text, nullptr, false);
  if (!list.is_array())
    return {};
  for (const auto& entry : list) {
    if (!entry.is_string())
      return {};
    texts.push_back(entry.get<std::string>());
  }
  return texts;
}

expected<named_arrays> read_tensors(const path& file, const std::vector<std::string>& names) {
  safetensors_metadata metadata;
  const auto tensors =
      read_safetensors(file, &metadata, {.types = safetensors_types::all, .mapped_bytes_min = mapped_bytes_min});
  if (!tensors)
    return tl::unexpected(tensors.error());
  named_arrays arrays;
  diagnostics errors;
  for (const auto& [name, value] : *tensors)
    if (is_among(name, names))
      arrays[name] = {{.values = value}, fmt::format("{}: {}", file.string(), name)};
    else
      errors.push_back(unknown_array(file.string(), name, names));
  for (const auto& [name, text] : metadata) {
    if (!is_among(name, names) || arrays.contains(name))
      continue;
    const auto place = fmt::format("{}: metadata {}", file.string(), name);
    arrays[name] = {{.texts = listed_texts(text)}, place};
    if (arrays[name].content.texts.empty())
      errors.push_back({place, R"(expected a JSON list of texts, as ["cat", "dog"])"});
  }
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  return arrays;
}

} // namespace

std::vector<path> array_files(const path& file, const std::vector<std::string>& names) {
  std::error_code failed;
  const bool is_folder = std::filesystem::is_directory(file, failed);
  if (!is_folder && file_ending(file) != ".npy")
    return {file};
  const auto folder = is_folder ? file : file.has_parent_path() ? file.parent_path() : path(".");
  std::vector<path> files;
  for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    if (file_ending(at->path()) == ".npy" && is_among(at->path().stem().string(), names))
      files.push_back(is_folder || file.has_parent_path() ? at->path() : at->path().filename());
  const auto place = [&](const path& array) { return std::find(names.begin(), names.end(), array.stem().string()); };
  std::sort(files.begin(), files.end(), [&](const path& a, const path& b) {
    return std::pair(place(a), a.native()) < std::pair(place(b), b.native());
  });
  return files;
}

expected<named_arrays> read_array_file(const path& file, const std::vector<std::string>& names) {
  std::error_code ignored;
  const auto ending = file_ending(file);
  if (std::filesystem::is_directory(file, ignored) || ending == ".npy")
    return read_siblings(file, names);
  if (ending == ".npz")
    return read_npz(file, names);
  if (ending == ".safetensors")
    return read_tensors(file, names);
  if (ending == ".parquet")
    return failed(file.string(),
                  "is a Parquet file, which is not read; convert it in Python: mneme.Data.from_parquet(FILE"
                  ", labels=COLUMN).keys() writes its rows and returns the keys of [data]");
  return failed(file.string(), "expected a file that ends with .safetensors, .npz or .npy, or a folder of .npy files");
}

} // namespace mneme
