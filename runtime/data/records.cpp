#include "runtime/data/records.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/new_tensor.hpp"
#include "runtime/data/byte_stream.hpp"
#include <algorithm>
#include <fmt/format.h>
namespace mneme {
namespace {

constexpr std::int64_t channels = 3, side = 32;
constexpr std::size_t pixel_bytes = channels * side * side;
constexpr std::int64_t records_max = 1'000'000; // limits memory, because a thousand compressed bytes can expand to a
                                                // megabyte

struct record_file {
  byte_stream stream{};
  std::int64_t records = 0;
};

expected<record_file> open_records(const std::filesystem::path& path, const record_layout& layout) {
  auto stream = byte_stream::open(path);
  if (!stream)
    return tl::unexpected(stream.error());
  const auto bytes = stream->content_bytes();
  if (!bytes)
    return tl::unexpected(bytes.error());
  const auto record_bytes = layout.label_bytes + pixel_bytes;
  if (*bytes == 0 || *bytes % record_bytes != 0)
    return failed(stream->place(*bytes),
                  fmt::format("the content ends here, after {} records of {} bytes and {} bytes "
                              "more: the file is truncated or of another data set, fetch it again",
                              *bytes / record_bytes, record_bytes, *bytes % record_bytes));
  return record_file{.stream = std::move(*stream), .records = static_cast<std::int64_t>(*bytes / record_bytes)};
}

/// Reads records into a table with memory reserved for the maximum number of records.
class record_reader {
public:
  record_reader(const record_layout& layout, row_limits limits, std::int64_t records_max)
      : layout_(layout), filter_(limits, layout.classes), before_(layout.label_bytes) {
    table_.images = new_tensor({records_max, channels, side, side}, at::kByte); // the system commits pages when they
                                                                                // are written
    next_ = table_.images.mutable_data_ptr<std::uint8_t>();
    table_.labels.reserve(static_cast<std::size_t>(records_max));
  }

  expected<void> read(record_file& file) {
    for (std::int64_t record = 0; record < file.records; ++record) {
      if (done())
        return {};
      if (auto read = read_one(file.stream, record); !read)
        return read;
    }
    return file.stream.expect_end();
  }
  /// Returns the rows read so far.
  image_table table() && {
    if (const auto rows = table_.size(); rows < table_.images.size(0))
      table_.images = table_.images.narrow(0, 0, rows).clone();
    return std::move(table_);
  }

private:
  bool done() const { return !layout_.domain_at && filter_.done(); }

  expected<void> read_one(byte_stream& stream, std::int64_t record) {
    const auto begin = stream.position();
    if (auto read = stream.read(before_).and_then([&] { return stream.read({next_, pixel_bytes}); }); !read)
      return read;
    next_ += pixel_bytes;
    const auto out_of_range = [&](const char* text, std::size_t at, std::int64_t count) {
      return failed(stream.place(begin + at),
                    fmt::format("record {} has {} {}, but this data set has 0 to {}: is it the "
                                "file of another data set?",
                                record, text, before_[at], count - 1));
    };
    const auto label = before_[layout_.label_at];
    if (label >= layout_.classes)
      return out_of_range("class", layout_.label_at, layout_.classes);
    const auto domain = layout_.domain_at ? before_[*layout_.domain_at] : std::uint8_t{0};
    if (domain >= layout_.domains)
      return out_of_range("domain", *layout_.domain_at, layout_.domains);
    table_.labels.push_back(label);
    if (layout_.domain_at)
      table_.domains.push_back(domain);
    (void)filter_.keep(label, domain); // this only counts the row; load_data() selects rows
    return {};
  }

  const record_layout& layout_;
  row_filter filter_;
  std::vector<std::uint8_t> before_; // bytes of a record that precede its pixels
  image_table table_{};
  std::uint8_t* next_ = nullptr; // destination for the pixels of the next record
};

} // namespace

expected<image_table> read_records(const std::vector<std::filesystem::path>& files, const record_layout& layout,
                                   row_limits limits) {
  MNEME_CHECK(std::max(layout.label_at, layout.domain_at.value_or(0)) < layout.label_bytes, layout.label_bytes);
  std::vector<record_file> opened;
  std::int64_t records = 0;
  diagnostics errors;
  for (const auto& path : files)
    if (auto file = open_records(path, layout); file) {
      records += file->records;
      opened.push_back(std::move(*file));
    } else
      append(errors, file.error());
  if (!errors.empty())
    return tl::unexpected(errors);
  if (records > records_max)
    return failed(files.front().string(), fmt::format("there are {} records in all, but data sets in this format have "
                                                      "at most {}: fetch the files again",
                                                      records, records_max));
  record_reader reader(layout, limits, records);
  for (auto& file : opened)
    if (auto read = reader.read(file); !read)
      return tl::unexpected(read.error());
  return std::move(reader).table();
}

} // namespace mneme
