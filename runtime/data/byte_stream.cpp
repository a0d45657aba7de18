#include "runtime/data/byte_stream.hpp"
#include <array>
#include <fmt/format.h>
#include <string_view>
namespace mneme {
namespace {

class plain : public unpacker {
public:
  explicit plain(disk_file file) : file_(std::move(file)) {}
  expected<std::size_t> fill(std::span<std::uint8_t> out) override { return file_.read(out); }
  std::uint64_t content_bytes_max() const override { return file_.size_bytes(); }
  expected<std::uint64_t> content_bytes() override { return file_.size_bytes(); }

private:
  disk_file file_;
};

struct packing {
  std::string_view suffix, name, magic;
  std::unique_ptr<unpacker> (*unpack)(disk_file);
};
constexpr std::array packings{
    packing{".gz", "gzip", "\x1F\x8B", gzip_unpacker},
    packing{".xz", "xz", "\xFD\x37zXZ", xz_unpacker},
};

/// Reads the first bytes of the file without changing its read position.
expected<std::string> first_bytes(disk_file& file) {
  std::array<std::uint8_t, 5> first{};
  const auto bytes = file.read(first);
  if (!bytes)
    return tl::unexpected(bytes.error());
  if (auto rewound = file.seek(0); !rewound)
    return tl::unexpected(rewound.error());
  return std::string(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(*bytes));
}

/// True if the file is compressed as `kind`. Fails if its extension and its content disagree.
expected<bool> is_packed(const disk_file& file, const std::string& first, const packing& kind) {
  const bool named = file.path().extension() == kind.suffix;
  const bool filled = first.starts_with(kind.magic);
  if (named && !filled)
    return failed(file.place(0), fmt::format("the name ends with {}, but this is not a {} file: fetch it again, or, if "
                                             "it is already unpacked, remove {} from its name",
                                             kind.suffix, kind.name, kind.suffix));
  if (filled && !named)
    return failed(file.place(0), fmt::format("these are {} data: add {} to the name", kind.name, kind.suffix));
  return named;
}

} // namespace

std::unique_ptr<unpacker> plain_unpacker(disk_file file) { return std::make_unique<plain>(std::move(file)); }

expected<byte_stream> byte_stream::open(const std::filesystem::path& path) {
  auto file = disk_file::open(path);
  if (!file)
    return tl::unexpected(file.error());
  const auto first = first_bytes(*file);
  if (!first)
    return tl::unexpected(first.error());
  byte_stream stream;
  stream.path_ = path;
  for (const auto& kind : packings) {
    const auto packed = is_packed(*file, *first, kind);
    if (!packed)
      return tl::unexpected(packed.error());
    if (*packed) {
      stream.packed_ = true;
      stream.unpacker_ = kind.unpack(std::move(*file));
      return stream;
    }
  }
  stream.unpacker_ = plain_unpacker(std::move(*file));
  return stream;
}

expected<void> byte_stream::read(std::span<std::uint8_t> out) {
  const auto bytes = unpacker_->fill(out);
  if (!bytes)
    return tl::unexpected(bytes.error());
  position_ += *bytes;
  if (*bytes < out.size())
    return failed(place(position_), fmt::format("the content ends here, {} bytes too early: the file is truncated, "
                                                "fetch it again",
                                                out.size() - *bytes));
  return {};
}

expected<void> byte_stream::expect_end() {
  std::array<std::uint8_t, 1> beyond{};
  const auto bytes = unpacker_->fill(beyond);
  if (!bytes)
    return tl::unexpected(bytes.error());
  if (*bytes > 0)
    return failed(place(position_), "the content should end here, but more bytes follow: fetch the file again");
  return {};
}

std::string byte_stream::place(std::uint64_t byte) const {
  return fmt::format("{}: {}byte {}", path_.string(), packed_ ? "unpacked " : "", byte);
}

} // namespace mneme
