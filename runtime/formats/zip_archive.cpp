#include "runtime/formats/zip_archive.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <set>
#include <zlib.h>
namespace mneme {
namespace {

// File layout: a local header and the content of each entry; a central directory with one record per entry; for 8-byte
// sizes, a zip64 end record with its locator; an end record with the offset of the directory (APPNOTE 6.3).

using bytes_view = std::span<const std::uint8_t>;
using flaw = tl::unexpected<zip_flaw>;

constexpr std::uint32_t own_mark = 0x04034b50, line_mark = 0x02014b50, end_mark = 0x06054b50,
                        wide_end_mark = 0x06064b50, locator_mark = 0x07064b50;
constexpr std::uint64_t own_bytes = 30, line_bytes = 46, end_bytes = 22, wide_end_bytes = 56, locator_bytes = 20;
constexpr std::uint64_t comment_bytes_max = 65'535;
constexpr std::uint32_t see_wide = 0xffffffff;
constexpr std::uint16_t wide_extra = 1, encrypted_flag = 1, stored_method = 0, deflated_method = 8;

template <class Number>
Number read_number(bytes_view file, std::uint64_t at) {
  Number value = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    value = static_cast<Number>(value | static_cast<Number>(Number{file[at + i]} << (8 * i)));
  return value;
}

/// True if [at, at + count) lies within [0, end).
bool lies_within(std::uint64_t at, std::uint64_t count, std::uint64_t end) { return at <= end && count <= end - at; }

/// Offset of the central directory, and its number of records.
struct directory {
  std::uint64_t begin = 0, bytes = 0, lines = 0;
  std::uint64_t end = 0; ///< Offset of the end records, which follow the directory.
};

/// Offset of the last end record that extends to the end of the file. Returns nullopt if there is none.
std::optional<std::uint64_t> end_record(bytes_view file) {
  if (file.size() < end_bytes)
    return std::nullopt;
  const auto last = file.size() - end_bytes, first = last - std::min<std::uint64_t>(last, comment_bytes_max);
  for (auto at = last + 1; at-- > first;)
    if (read_number<std::uint32_t>(file, at) == end_mark &&
        at + end_bytes + read_number<std::uint16_t>(file, at + 20) == file.size())
      return at;
  return std::nullopt;
}

tl::expected<directory, zip_flaw> wide_directory(bytes_view file, std::uint64_t end) {
  const auto locator = end - locator_bytes;
  const auto at = read_number<std::uint64_t>(file, locator + 8);
  if (!lies_within(at, wide_end_bytes, locator) || read_number<std::uint32_t>(file, at) != wide_end_mark)
    return flaw({locator, "the archive's zip64 end record is not at its offset; the file is damaged"});
  return directory{.begin = read_number<std::uint64_t>(file, at + 48),
                   .bytes = read_number<std::uint64_t>(file, at + 40),
                   .lines = read_number<std::uint64_t>(file, at + 32),
                   .end = at};
}

tl::expected<directory, zip_flaw> directory_of(bytes_view file) {
  const auto end = end_record(file);
  if (!end)
    return flaw({file.size(), "the archive's directory is missing at the end; is the file truncated?"});
  directory place{.begin = read_number<std::uint32_t>(file, *end + 16),
                  .bytes = read_number<std::uint32_t>(file, *end + 12),
                  .lines = read_number<std::uint16_t>(file, *end + 10),
                  .end = *end};
  if (*end >= locator_bytes && read_number<std::uint32_t>(file, *end - locator_bytes) == locator_mark) {
    auto wide = wide_directory(file, *end);
    if (!wide)
      return wide;
    place = *wide;
  }
  if (!lies_within(place.begin, place.bytes, place.end) || place.lines > place.bytes / line_bytes)
    return flaw({place.end, fmt::format("the archive's directory of {} entries is at bytes {} to {}, outside its "
                                        "bounds; the file is damaged or truncated",
                                        place.lines, place.begin, place.begin + place.bytes)});
  return place;
}

/// Reads sizes and offset that exceed 32 bits, in this order, from the extra field of a directory record.
bool read_wide(bytes_view file, std::uint64_t at, std::uint64_t end, zip_entry& into) {
  while (lies_within(at, 4, end)) {
    const auto kind = read_number<std::uint16_t>(file, at), size = read_number<std::uint16_t>(file, at + 2);
    at += 4;
    if (!lies_within(at, size, end))
      return false;
    if (kind != wide_extra) {
      at += size;
      continue;
    }
    const auto last = at + size;
    for (auto* value : {&into.bytes, &into.stored_bytes, &into.header}) {
      if (*value != see_wide)
        continue;
      if (!lies_within(at, 8, last))
        return false;
      *value = read_number<std::uint64_t>(file, at);
      at += 8;
    }
    return true;
  }
  return into.bytes != see_wide && into.stored_bytes != see_wide && into.header != see_wide;
}

/// Parses the directory record at `at` and moves `at` past it.
tl::expected<zip_entry, zip_flaw> entry_of_line(bytes_view file, std::uint64_t& at, std::uint64_t end) {
  const auto damaged = [&] { return flaw({at, "an entry of the archive's directory is damaged"}); };
  if (!lies_within(at, line_bytes, end) || read_number<std::uint32_t>(file, at) != line_mark)
    return damaged();
  const auto name_bytes = read_number<std::uint16_t>(file, at + 28),
             extra_bytes = read_number<std::uint16_t>(file, at + 30),
             comment_bytes = read_number<std::uint16_t>(file, at + 32);
  const auto name = at + line_bytes, extra = name + name_bytes;
  if (!lies_within(name, std::uint64_t{name_bytes} + extra_bytes + comment_bytes, end))
    return damaged();
  zip_entry entry{.name = {reinterpret_cast<const char*>(file.data() + name), name_bytes},
                  .header = read_number<std::uint32_t>(file, at + 42),
                  .stored_bytes = read_number<std::uint32_t>(file, at + 20),
                  .bytes = read_number<std::uint32_t>(file, at + 24),
                  .checksum = read_number<std::uint32_t>(file, at + 16)};
  const auto method = read_number<std::uint16_t>(file, at + 10);
  if ((read_number<std::uint16_t>(file, at + 8) & encrypted_flag) != 0)
    return flaw({at, fmt::format("'{}' is encrypted", entry.name)});
  if (method != stored_method && method != deflated_method)
    return flaw({at, fmt::format("'{}' is compressed with method {}; expected 0 (stored) or 8 (deflated)", entry.name,
                                 method)});
  entry.deflated = method == deflated_method;
  if (!read_wide(file, extra, extra + extra_bytes, entry))
    return damaged();
  at = extra + extra_bytes + comment_bytes;
  return entry;
}

/// Finds an entry's content through its local header. @param end offset of the central directory
std::optional<zip_flaw> find_content(bytes_view file, std::uint64_t end, zip_entry& entry) {
  if (!lies_within(entry.header, own_bytes, end) || read_number<std::uint32_t>(file, entry.header) != own_mark)
    return zip_flaw{
        entry.header,
        fmt::format("'{}' is not at its offset in the archive's directory; the file is damaged", entry.name)};
  const auto name_bytes = read_number<std::uint16_t>(file, entry.header + 26);
  entry.begin = entry.header + own_bytes + name_bytes + read_number<std::uint16_t>(file, entry.header + 28);
  if (!lies_within(entry.begin, entry.stored_bytes, end))
    return zip_flaw{
        entry.header,
        fmt::format("'{}' has {} bytes, which reach beyond the archive's contents; the file is damaged or truncated",
                    entry.name, entry.stored_bytes)};
  const std::string own_name(reinterpret_cast<const char*>(file.data() + entry.header + own_bytes), name_bytes);
  if (own_name != entry.name)
    return zip_flaw{entry.header, fmt::format("'{}' is called '{}' in the archive's directory", own_name, entry.name)};
  if (!entry.deflated && entry.stored_bytes != entry.bytes)
    return zip_flaw{entry.header, fmt::format("'{}' is stored uncompressed, but its {} bytes should become {}",
                                              entry.name, entry.stored_bytes, entry.bytes)};
  return std::nullopt;
}

/// Passes an entry's uncompressed content to `use` in pieces. Returns false if it does not match the directory.
template <class Use>
bool unpack(bytes_view file, const zip_entry& entry, Use use) {
  const auto packed = file.subspan(entry.begin, entry.stored_bytes);
  if (!entry.deflated) {
    use(packed);
    return true;
  }
  std::vector<std::uint8_t> piece(std::size_t{1} << 16);
  z_stream stream{};
  const int begun = inflateInit2(&stream, -15); // maximum window, and raw deflate
  MNEME_CHECK(begun == Z_OK, begun);
  std::uint64_t fed = 0, made = 0;
  int state = Z_OK;
  while (state == Z_OK && made <= entry.bytes) {
    if (stream.avail_in == 0) {
      const auto next = packed.subspan(fed, std::min<std::uint64_t>(packed.size() - fed, std::uint64_t{1} << 30));
      stream.next_in = const_cast<std::uint8_t*>(next.data()); // zlib does not write to its input
      stream.avail_in = static_cast<uInt>(next.size());
      fed += next.size();
    }
    stream.next_out = piece.data();
    stream.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    const auto filled = piece.size() - stream.avail_out;
    made += filled;
    use(bytes_view(piece.data(), filled));
  }
  const bool whole = state == Z_STREAM_END && made == entry.bytes && stream.avail_in == 0 && fed == packed.size();
  inflateEnd(&stream);
  return whole;
}

std::optional<zip_flaw> check_content(bytes_view file, const zip_entry& entry) {
  uLong checksum = crc32(0, nullptr, 0);
  const bool whole =
      unpack(file, entry, [&](bytes_view piece) { checksum = crc32_z(checksum, piece.data(), piece.size()); });
  if (whole && checksum == entry.checksum)
    return std::nullopt;
  return zip_flaw{entry.begin,
                  fmt::format("'{}' has another {} than the archive's directory states; the file is damaged",
                              entry.name, whole ? "checksum" : "size")};
}

/// Checks conditions that involve several entries: overlaps, equal names, total size.
std::optional<zip_flaw> check_together(const std::vector<zip_entry>& entries, std::uint64_t inflated_bytes_max) {
  std::set<std::string> names;
  std::uint64_t previous_end = 0, inflated = 0;
  for (const auto& entry : entries) {
    if (!names.insert(entry.name).second)
      return zip_flaw{entry.header, fmt::format("'{}' occurs twice", entry.name)};
    if (entry.header < previous_end)
      return zip_flaw{entry.header, fmt::format("'{}' overlaps the entry before it", entry.name)};
    previous_end = entry.begin + entry.stored_bytes;
    if (!entry.deflated)
      continue;
    if (entry.bytes > inflated_bytes_max - inflated)
      return zip_flaw{entry.header, fmt::format("'{}' would unpack to {} bytes; at most {} bytes are accepted",
                                                entry.name, entry.bytes, inflated_bytes_max)};
    inflated += entry.bytes;
  }
  return std::nullopt;
}

} // namespace

tl::expected<std::vector<zip_entry>, zip_flaw> zip_entries(bytes_view file, std::uint64_t inflated_bytes_max) {
  const auto place = directory_of(file);
  if (!place)
    return flaw(place.error());
  std::vector<zip_entry> entries;
  auto at = place->begin;
  for (std::uint64_t i = 0; i < place->lines; ++i) {
    auto entry = entry_of_line(file, at, place->begin + place->bytes);
    if (!entry)
      return flaw(entry.error());
    if (auto errors = find_content(file, place->begin, *entry))
      return flaw(*errors);
    entries.push_back(std::move(*entry));
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const zip_entry& a, const zip_entry& b) { return a.header < b.header; });
  if (auto errors = check_together(entries, inflated_bytes_max))
    return flaw(*errors);
  for (const auto& entry : entries)
    if (auto errors = check_content(file, entry))
      return flaw(*errors);
  return entries;
}

void zip_pieces(bytes_view file, const zip_entry& entry, const std::function<void(bytes_view)>& use) {
  const bool whole = unpack(file, entry, use);
  MNEME_CHECK(whole, entry.name);
}

std::string zip_content(bytes_view file, const zip_entry& entry) {
  std::string content;
  const bool whole = unpack(file, entry, [&](bytes_view piece) {
    content.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  MNEME_CHECK(whole && content.size() == entry.bytes, entry.name);
  return content;
}

} // namespace mneme
