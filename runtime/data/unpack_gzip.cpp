#include "runtime/base/check.hpp"
#include "runtime/data/unpack.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <vector>
#include <zlib.h>
namespace mneme {
namespace {

constexpr std::size_t gzip_buffer_bytes = 1 << 18;
constexpr std::uint64_t deflate_ratio_max = 1032; // the largest match, 258 bytes, takes at least two bits

class gzip : public unpacker {
public:
  explicit gzip(disk_file file) : file_(std::move(file)), input_(gzip_buffer_bytes) {
    const int begun = inflateInit2(&stream_, 15 + 16); // maximum window, and only the gzip format
    MNEME_CHECK(begun == Z_OK, begun);
  }
  ~gzip() override { inflateEnd(&stream_); }
  gzip(const gzip&) = delete;
  gzip& operator=(const gzip&) = delete;

  expected<std::size_t> fill(std::span<std::uint8_t> out) override {
    std::size_t done = 0;
    while (done < out.size() && !ended_) {
      const auto piece = std::min<std::size_t>(out.size() - done, 1 << 30); // zlib counts with 32-bit integers
      stream_.next_out = out.data() + done;
      stream_.avail_out = static_cast<uInt>(piece);
      if (auto stepped = step(); !stepped)
        return tl::unexpected(stepped.error());
      done += piece - stream_.avail_out;
    }
    return done;
  }

  std::uint64_t content_bytes_max() const override { return file_.size_bytes() * deflate_ratio_max; }

  expected<std::uint64_t> content_bytes() override {
    std::vector<std::uint8_t> unpacked(gzip_buffer_bytes);
    std::uint64_t total = 0;
    while (!ended_) {
      const auto filled = fill(unpacked);
      if (!filled)
        return tl::unexpected(filled.error());
      total += *filled;
    }
    if (auto rewound = file_.seek(0); !rewound)
      return tl::unexpected(rewound.error());
    stream_.avail_in = 0;
    inflateReset(&stream_);
    ended_ = between_ = false;
    return total;
  }

private:
  /// Calls inflate() once, after providing input if needed.
  expected<void> step() {
    if (stream_.avail_in == 0) {
      const auto bytes = file_.read(input_);
      if (!bytes)
        return tl::unexpected(bytes.error());
      stream_.next_in = input_.data();
      stream_.avail_in = static_cast<uInt>(*bytes);
    }
    if (stream_.avail_in == 0)
      return end_of_file();
    skip_padding();
    if (stream_.avail_in == 0)
      return {};
    const auto begin = file_.position() - stream_.avail_in;
    const int answer = inflate(&stream_, Z_NO_FLUSH);
    if (between_ && answer < 0 && answer != Z_BUF_ERROR)
      return failed(file_.place(begin), "bytes follow the end of the gzip data: fetch the file again");
    between_ = answer == Z_STREAM_END || (between_ && stream_.total_in < 2);
    if (answer == Z_STREAM_END)
      inflateReset(&stream_); // another member may follow; the contents of members are concatenated
    else if (answer != Z_OK && answer != Z_BUF_ERROR)
      return failed(file_.place(file_.position() - stream_.avail_in),
                    fmt::format("the gzip data are corrupt ({}): fetch the file again",
                                stream_.msg ? stream_.msg : "it requires a preset dictionary"));
    return {};
  }

  /// Skips zero padding between and after members, which some writers add.
  void skip_padding() {
    while (between_ && stream_.total_in == 0 && stream_.avail_in > 0 && *stream_.next_in == 0) {
      ++stream_.next_in;
      --stream_.avail_in;
    }
  }

  expected<void> end_of_file() {
    if (!between_ || stream_.total_in > 0)
      return failed(file_.place(file_.size_bytes()),
                    "the gzip data end too early: the file is truncated, fetch it again");
    ended_ = true;
    return {};
  }

  disk_file file_;
  std::vector<std::uint8_t> input_;
  z_stream stream_{};
  bool between_ = false; // true: between two members, or at the end of the file
  bool ended_ = false;
};

} // namespace

std::unique_ptr<unpacker> gzip_unpacker(disk_file file) { return std::make_unique<gzip>(std::move(file)); }

} // namespace mneme
