#include "runtime/kernels/dropout.hpp"
#include "runtime/kernels/instruction_set.hpp"
namespace mneme::kernels {
namespace {

constexpr int blocks = 16; // number of Philox blocks computed together

/// Computes the words of `blocks` blocks of the stream, from block `first` on. The words equal the results of
/// philox4x32(). The first words of all blocks come first, then the second words, and so on.
MNEME_INLINE void philox_blocks(const stream_name& stream, std::uint64_t first, std::uint32_t (&words)[4][blocks]) {
  std::uint32_t key0 = stream.key[0], key1 = stream.key[1];
  for (int i = 0; i < blocks; ++i) {
    const std::uint64_t block = first + static_cast<std::uint64_t>(i);
    words[0][i] = static_cast<std::uint32_t>(block);
    words[1][i] = static_cast<std::uint32_t>(block >> 32U);
    words[2][i] = stream.high[0];
    words[3][i] = stream.high[1];
  }
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < blocks; ++i) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * words[0][i], b = std::uint64_t{0xCD9E8D57} * words[2][i];
      const std::uint32_t second = words[1][i], fourth = words[3][i];
      words[0][i] = static_cast<std::uint32_t>(b >> 32U) ^ second ^ key0;
      words[1][i] = static_cast<std::uint32_t>(b);
      words[2][i] = static_cast<std::uint32_t>(a >> 32U) ^ fourth ^ key1;
      words[3][i] = static_cast<std::uint32_t>(a);
    }
    key0 += 0x9E3779B9, key1 += 0xBB67AE85;
  }
}

/// Draws a mask from 8-bit or 16-bit numbers; Bits is std::uint8_t or std::uint16_t.
template <class Bits>
MNEME_INLINE void draw_from(const stream_name& stream, std::uint32_t drop_below, std::uint8_t* mask, std::int64_t n) {
  constexpr std::int64_t drawn = 4 * blocks * sizeof(std::uint32_t) / sizeof(Bits);
  std::uint32_t words[4][blocks];
  Bits numbers[drawn];
  std::uint64_t block = 0;
  for (std::int64_t at = 0; at < n; at += drawn, block += blocks) {
    philox_blocks(stream, block, words);
    __builtin_memcpy(numbers, words, sizeof words);
    const std::int64_t count = n - at < drawn ? n - at : drawn;
    if (count == drawn)
      for (std::int64_t i = 0; i < drawn; ++i)
        mask[at + i] = numbers[i] >= drop_below;
    else
      for (std::int64_t i = 0; i < count; ++i)
        mask[at + i] = numbers[i] >= drop_below;
  }
}

template <class Set>
MNEME_INLINE void draw_mask_body(const stream_name& stream, std::uint32_t drop_below, std::uint8_t* mask,
                                 std::int64_t n) {
  if (drop_below % 256 == 0)
    draw_from<std::uint8_t>(stream, drop_below / 256, mask, n);
  else
    draw_from<std::uint16_t>(stream, drop_below, mask, n);
}

template <class Set>
MNEME_INLINE void apply_mask_body(const float* __restrict in, const std::uint8_t* __restrict mask, float scale,
                                  float* __restrict out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = mask[i] ? in[i] * scale : 0.0F;
}

MNEME_KERNEL(draw_mask, (const stream_name& stream, std::uint32_t drop_below, std::uint8_t* mask, std::int64_t n),
             (stream, drop_below, mask, n))
MNEME_KERNEL(apply_mask, (const float* in, const std::uint8_t* mask, float scale, float* out, std::int64_t n),
             (in, mask, scale, out, n))

} // namespace

void draw_dropout_mask(const stream_name& stream, std::uint32_t drop_below, std::uint8_t* mask, std::int64_t n) {
  best_draw_mask(stream, drop_below, mask, n);
}
void apply_dropout_mask(const float* in, const std::uint8_t* mask, float scale, float* out, std::int64_t n) {
  best_apply_mask(in, mask, scale, out, n);
}

} // namespace mneme::kernels
