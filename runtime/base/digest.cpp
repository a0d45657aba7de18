#include "runtime/base/digest.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/disk_file.hpp"
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <system_error>
#include <xxhash.h>
namespace mneme {
namespace {

static_assert(std::endian::native == std::endian::little, "digests are defined over little-endian bytes");

digest128 from(XXH128_hash_t hash) { return {.high = hash.high64, .low = hash.low64}; }

void add(digest_stream& to, std::uint64_t number) { to.add(std::as_bytes(std::span(&number, 1))); }
/// Adds the length of a text and then the text, so that different lists of texts never give equal bytes.
void add(digest_stream& to, std::string_view text) {
  add(to, text.size());
  to.add(std::as_bytes(std::span(text)));
}

digest128 chained(const digest128& before, std::span<const std::uint64_t> item) {
  std::array<std::uint64_t, 4> words{before.high, before.low};
  MNEME_CHECK(item.size() <= 2, item.size());
  std::copy(item.begin(), item.end(), words.begin() + 2);
  return digest_of(std::as_bytes(std::span(words).first(2 + item.size())));
}

} // namespace

std::string hex_text(const digest128& digest) { return fmt::format("{:016x}{:016x}", digest.high, digest.low); }

digest128 digest_of(std::span<const std::byte> bytes) { return from(XXH3_128bits(bytes.data(), bytes.size())); }

digest128 digest_of(const tensor_map& tensors) {
  digest_stream digest;
  for (const auto& [name, value] : tensors) {
    const auto host = value.cpu();
    add(digest, std::string_view(name));
    add(digest, std::string_view(c10::toString(host.scalar_type())));
    add(digest, static_cast<std::uint64_t>(host.dim()));
    for (auto extent : host.sizes())
      add(digest, static_cast<std::uint64_t>(extent));
    digest.add({static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes()});
  }
  return digest.value();
}

digest128 digest_of_file(const std::string& path) {
  if (const auto kind = special_kind(path); !kind.empty())
    throw std::system_error(std::make_error_code(std::errc::not_supported), "'" + path + "' is " + kind);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  auto failure = [&] { return std::system_error(errno, std::generic_category(), "cannot read '" + path + "'"); };
  if (!file)
    throw failure();
  digest_stream digest;
  std::vector<std::byte> block(std::size_t{1} << 20);
  while (const auto count = std::fread(block.data(), 1, block.size(), file.get()))
    digest.add(std::span(block).first(count));
  if (std::ferror(file.get()))
    throw failure();
  return digest.value();
}

digest_stream::digest_stream() : state_(XXH3_createState()) {
  MNEME_CHECK(state_ != nullptr, "out of memory");
  XXH3_128bits_reset(state_.get());
}

void digest_stream::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

digest128 digest_stream::value() const { return from(XXH3_128bits_digest(state_.get())); }

void digest_stream::freed::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

void run_digest::add(std::uint64_t item) { value_ = chained(value_, std::array{item}); }

void run_digest::add(double item) { add(std::bit_cast<std::uint64_t>(item)); }

void run_digest::add(const digest128& item) { value_ = chained(value_, std::array{item.high, item.low}); }

} // namespace mneme
