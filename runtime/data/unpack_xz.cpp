#include "runtime/base/check.hpp"
#include "runtime/data/unpack.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <lzma.h>
#include <thread>
#include <vector>
namespace mneme {
namespace {

constexpr std::size_t xz_buffer_bytes = 1 << 18;
constexpr std::uint64_t xz_ratio_max = 1 << 14;       // zeros are compressed by a factor of 7,000
constexpr std::uint64_t memory_max_bytes = 256 << 20; // xz -9 needs 65 MiB
constexpr std::uint64_t threads_memory_max_bytes = 512 << 20;
constexpr std::uint64_t padding_unit_bytes = 4; // streams are followed by zero bytes in units of this size

const char* words(lzma_ret answer) {
  switch (answer) {
  case LZMA_FORMAT_ERROR:
    return "this is not xz";
  case LZMA_OPTIONS_ERROR:
    return "it asks for a filter that this liblzma does not have";
  case LZMA_MEMLIMIT_ERROR:
    return "unpacking it takes more than 256 MiB";
  case LZMA_MEM_ERROR:
    return "out of memory";
  default:
    return "checksums or codes do not fit";
  }
}

class xz : public unpacker {
public:
  explicit xz(disk_file file) : file_(std::move(file)), input_(xz_buffer_bytes) { begin(); }
  ~xz() override { lzma_end(&stream_); }
  xz(const xz&) = delete;
  xz& operator=(const xz&) = delete;

  expected<std::size_t> fill(std::span<std::uint8_t> out) override {
    stream_.next_out = out.data();
    stream_.avail_out = out.size();
    while (stream_.avail_out > 0 && !ended_)
      if (auto stepped = step(); !stepped)
        return tl::unexpected(stepped.error());
    return out.size() - stream_.avail_out;
  }

  std::uint64_t content_bytes_max() const override { return file_.size_bytes() * xz_ratio_max; }

  // The index at the end of the file states the size, without decompressing.
  expected<std::uint64_t> content_bytes() override {
    lzma_index* index = nullptr;
    const auto opened = lzma_file_info_decoder(&stream_, &index, memory_max_bytes, file_.size_bytes());
    MNEME_CHECK(opened == LZMA_OK, opened);
    lzma_ret answer = LZMA_OK;
    while (answer == LZMA_OK || answer == LZMA_SEEK_NEEDED) {
      if (auto provided = answer == LZMA_SEEK_NEEDED ? reposition() : provide(); !provided)
        return tl::unexpected(provided.error());
      answer = lzma_code(&stream_, at_end_ ? LZMA_FINISH : LZMA_RUN);
    }
    if (answer != LZMA_STREAM_END)
      return failed(file_.place(file_.size_bytes()),
                    fmt::format("the file does not end as xz files do ({}): it is truncated or has other bytes after "
                                "its end, fetch it again",
                                words(answer)));
    const std::uint64_t bytes = lzma_index_uncompressed_size(index);
    lzma_index_end(index, nullptr);
    if (bytes > content_bytes_max())
      return failed(file_.place(file_.size_bytes()),
                    fmt::format("the xz index claims {} bytes, which {} packed bytes cannot hold: fetch the file again",
                                bytes, file_.size_bytes()));
    return restart(bytes);
  }

private:
  void begin() {
    lzma_mt options{};
    options.threads = std::clamp(std::thread::hardware_concurrency(), 1U, 4U);
    options.memlimit_threading = threads_memory_max_bytes;
    options.memlimit_stop = memory_max_bytes;
    const auto begun = lzma_stream_decoder_mt(&stream_, &options);
    MNEME_CHECK(begun == LZMA_OK, begun);
  }

  /// Reads more input if there is none left.
  expected<void> provide() {
    if (stream_.avail_in > 0 || at_end_)
      return {};
    const auto bytes = file_.read(input_);
    if (!bytes)
      return tl::unexpected(bytes.error());
    stream_.next_in = input_.data();
    stream_.avail_in = *bytes;
    at_end_ = file_.position() == file_.size_bytes();
    return {};
  }

  expected<void> reposition() {
    stream_.avail_in = 0;
    at_end_ = false;
    return file_.seek(stream_.seek_pos).and_then([this] { return provide(); });
  }

  expected<std::uint64_t> restart(std::uint64_t bytes) {
    stream_.avail_in = 0;
    at_end_ = false;
    begin();
    return file_.seek(0).map([bytes] { return bytes; });
  }

  expected<void> step() {
    if (auto provided = provide(); !provided)
      return provided;
    const auto answer = lzma_code(&stream_, at_end_ ? LZMA_FINISH : LZMA_RUN);
    const auto used = file_.position() - stream_.avail_in;
    if (answer == LZMA_STREAM_END)
      return end_stream();
    const bool lacks_header = answer == LZMA_BUF_ERROR && file_.size_bytes() - stream_begin_ < LZMA_STREAM_HEADER_SIZE;
    if (stream_begin_ > 0 && (answer == LZMA_FORMAT_ERROR || lacks_header))
      return failed(file_.place(stream_begin_), "bytes follow the end of the xz data: fetch the file again");
    if (answer == LZMA_BUF_ERROR) // the input ended early
      return failed(file_.place(file_.size_bytes()),
                    "the xz data end too early: the file is truncated, fetch it again");
    if (answer != LZMA_OK)
      return failed(file_.place(used), fmt::format("the xz data are corrupt ({}; found after {} unpacked bytes): "
                                                   "fetch the file again",
                                                   words(answer), unpacked_bytes_ + stream_.total_out));
    return {};
  }

  /// Skips the padding after a stream and starts the next stream, if any. Contents are concatenated.
  expected<void> end_stream() {
    const auto end = file_.position() - stream_.avail_in;
    std::uint64_t padding = 0;
    for (;;) {
      if (auto provided = provide(); !provided)
        return provided;
      if (stream_.avail_in == 0 || *stream_.next_in != 0)
        break;
      ++stream_.next_in;
      --stream_.avail_in;
      ++padding;
    }
    ended_ = stream_.avail_in == 0;
    if (padding % padding_unit_bytes != 0)
      return failed(file_.place(end), fmt::format("{} zeros follow the end of the xz data, where a multiple of {} is "
                                                  "allowed: fetch the file again",
                                                  padding, padding_unit_bytes));
    unpacked_bytes_ += stream_.total_out;
    stream_begin_ = end + padding;
    if (!ended_)
      begin();
    return {};
  }

  disk_file file_;
  std::vector<std::uint8_t> input_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
  std::uint64_t stream_begin_ = 0, unpacked_bytes_ = 0; // offset of this stream, and number of bytes of earlier streams
  bool at_end_ = false;                                 // true: all input has been read
  bool ended_ = false;                                  // true: all content has been read
};

} // namespace

std::unique_ptr<unpacker> xz_unpacker(disk_file file) { return std::make_unique<xz>(std::move(file)); }

} // namespace mneme
