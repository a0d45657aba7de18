#include "runtime/population/client_set.hpp"
#include "runtime/base/ceil_div.hpp"
#include "runtime/base/check.hpp"
#include <bit>
namespace mneme {
namespace {

std::size_t parts(std::size_t whole, std::size_t part) { return ceil_div(whole, part); }

/// Counts the set bits of each byte of `word`. Baseline x86-64 has no popcount instruction, and libgcc's function is
/// slower.
std::uint64_t bits_by_byte(std::uint64_t word) {
  word -= (word >> 1) & 0x5555555555555555;
  word = (word & 0x3333333333333333) + ((word >> 2) & 0x3333333333333333);
  return (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f;
}

std::int64_t set_bits(std::uint64_t word) {
  return static_cast<std::int64_t>((bits_by_byte(word) * 0x0101010101010101) >> 56);
}

/// Index of the n-th set bit, n from 0.
std::uint32_t nth_bit(std::uint64_t word, std::int64_t n) {
  std::uint32_t passed = 0;
  for (auto counts = bits_by_byte(word); n >= static_cast<std::int64_t>(counts & 0xff); counts >>= 8) {
    n -= static_cast<std::int64_t>(counts & 0xff);
    word >>= 8;
    passed += 8;
  }
  for (; n > 0; --n)
    word &= word - 1;
  return passed + static_cast<std::uint32_t>(std::countr_zero(word));
}

/// Index of the first count, starting at `at`, that exceeds n. Subtracts the counts before it from n.
std::size_t walked(const std::vector<std::uint32_t>& counts, std::size_t at, std::int64_t& n) {
  for (; n >= std::int64_t{counts[at]}; ++at)
    n -= counts[at];
  return at;
}

} // namespace

client_set::client_set(std::int64_t clients)
    : words_(parts(static_cast<std::size_t>(clients), 64)), blocks_(parts(words_.size(), words_of_block)),
      regions_(parts(blocks_.size(), blocks_of_region)) {}

void client_set::put(client_id client, bool in) {
  if (contains(client) == in)
    return;
  const std::size_t word = client.value / 64, block = word / words_of_block;
  const std::uint32_t change = in ? 1 : ~std::uint32_t{0}; // adds 1 or -1 modulo 2^32
  words_[word] ^= std::uint64_t{1} << (client.value % 64);
  blocks_[block] += change;
  regions_[block / blocks_of_region] += change;
  size_ += in ? 1 : -1;
}

bool client_set::is_valid(std::int64_t clients) const {
  client_set counted(clients);
  if (words_.size() != counted.words_.size())
    return false;
  for (std::uint32_t client = 0; client < words_.size() * 64; ++client) {
    if (client >= clients && contains({client}))
      return false;
    if (client < clients)
      counted.put({client}, contains({client}));
  }
  return counted.blocks_ == blocks_ && counted.regions_ == regions_ && counted.size_ == size_;
}

client_id client_set::nth(std::int64_t n) const {
  MNEME_CHECK(n >= 0 && n < size_, n, size_);
  const auto region = walked(regions_, 0, n);
  auto word = walked(blocks_, region * blocks_of_region, n) * words_of_block;
  for (std::int64_t bits = 0; n >= (bits = set_bits(words_[word])); ++word)
    n -= bits;
  return {static_cast<std::uint32_t>(word * 64) + nth_bit(words_[word], n)};
}

} // namespace mneme
