/// gather: rows of a data set as a batch a net can read: normalised, transformed and augmented.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/settings/scenario.hpp"
#include <ATen/core/Tensor.h>
#include <optional>
#include <span>
namespace mneme {

// Axes: B rows of a batch; C channels, H height, W width of an image.

/// How one row is augmented.
struct augmentation {
  std::int32_t down = 0, right = 0;    ///< The crop's place within the image padded by 4: -4 .. 4 from its middle.
  bool flip = false;                   ///< Left and right exchanged, after the crop.
  float brightness = 1.0F;             ///< Multiplies pixels in [0, 1], which are clamped then.
  std::optional<std::uint64_t> part{}; ///< Draws the part that is shown in place of the image (drawn_part()).
};
inline constexpr std::int32_t crop_padding_px = 4;

/// What `kind` does to the row at `position` of a job in `epoch`: a function of its arguments only.
/// @param stream the job's; augmentation is keyed below it
[[nodiscard]] augmentation drawn_augmentation(augmentation_kind kind, const rng_key& stream, std::int64_t epoch,
                                              std::int64_t position);

/// In place of a row: zeros, as the padding of a step needs them.
inline constexpr std::int64_t padding_row = -1;

/// Writes rows into out [rows.size(), C, H, W] float32 at `out`. Transforms, or the size that is shown, come first,
/// then the augmentation (outside the image is black), then the data set's normalisation.
/// @param augment one entry per row, or empty: none
/// @pre every row is a row of `source` or padding_row
void gather(const dataset& source, std::span<const std::int64_t> rows, std::span<const augmentation> augment,
            float* out);

/// Asks the caches for rows before they are read.
class rows_ahead {
public:
  explicit rows_ahead(const dataset& source);
  /// Image and label. Returns the bytes asked for.
  std::int64_t fetch(std::int64_t row) const;

private:
  const dataset& source_;
  const std::uint8_t* images_ = nullptr;
  std::int64_t image_bytes_ = 0;
};

/// What the row at `position` of a job is drawn by in `epoch`, where the data set has deviations.
[[nodiscard]] rng_key noise_key(const rng_key& stream, std::int64_t epoch, std::int64_t position);
/// The rows of a data set of vectors, into out [rows.size(), D]: v, or v + deviation * e with e ~ N(0, 1) of the row's
/// own stream. @param noise one key per row, or empty: means @pre every row is a row of `source` or padding_row
void gather_vectors(const dataset& source, std::span<const std::int64_t> rows, std::span<const rng_key> noise,
                    float* out);

/// gather() or gather_vectors(), as the data set wants it; the span that it does not read is ignored.
inline void gather_any(const dataset& source, std::span<const std::int64_t> rows, std::span<const augmentation> augment,
                       std::span<const rng_key> noise, float* out) {
  if (source.vectors.defined())
    gather_vectors(source, rows, noise, out);
  else
    gather(source, rows, augment, out);
}

} // namespace mneme
