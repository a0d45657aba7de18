/// gather: collects rows of a data set into an input batch. Rows are transformed, augmented and normalized.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/settings/scenario.hpp"
#include <ATen/core/Tensor.h>
#include <optional>
#include <span>
namespace mneme {

// Axes: B rows of a batch; C channels, H height, W width of an image.

/// Random augmentation of one row.
struct augmentation {
  std::int32_t down = 0, right = 0;    ///< Offset of the crop from the center of the image padded by 4 px: -4 .. 4 px.
  bool flip = false;                   ///< true: mirrored left to right, after the crop.
  float brightness = 1.0F;             ///< Factor of pixels in [0, 1], which are then clamped.
  std::optional<std::uint64_t> part{}; ///< Random number that selects a crop to resize (random_crop_box()).
};
inline constexpr std::int32_t crop_padding_px = 4;

/// Draws the augmentation of the row at `position` of a job in `epoch`; the result depends on the arguments only.
/// @param stream the job's random key, from which the augmentation's key is derived
[[nodiscard]] augmentation draw_augmentation(augmentation_kind kind, const rng_key& stream, std::int64_t epoch,
                                             std::int64_t position);

/// Row number of a padding row, which is all zeros.
inline constexpr std::int64_t padding_row = -1;

/// Writes rows to `out` as [rows.size(), C, H, W] float32. Transforms or resizing come first, then augmentation, in
/// which pixels outside the image are black, then the data set's normalization.
/// @param augment one entry per row, or empty: none
/// @pre every row is a row of `source` or padding_row
void gather(const dataset& source, std::span<const std::int64_t> rows, std::span<const augmentation> augment,
            float* out);

/// Prefetches rows before they are read.
class row_prefetcher {
public:
  explicit row_prefetcher(const dataset& source);
  /// Prefetches image and label of a row. Returns the number of prefetched bytes.
  std::int64_t fetch(std::int64_t row) const;

private:
  const dataset& source_;
  const std::uint8_t* images_ = nullptr;
  std::int64_t image_bytes_ = 0;
};

/// Key of the noise of the row at `position` of a job in `epoch`, for data sets with deviations.
[[nodiscard]] rng_key noise_key(const rng_key& stream, std::int64_t epoch, std::int64_t position);
/// Writes rows v of a data set of vectors to `out` [rows.size(), D], as v or as v + deviation * e with e ~ N(0, 1).
/// @param noise one key per row, or empty: v without noise @pre every row is a row of `source` or padding_row
void gather_vectors(const dataset& source, std::span<const std::int64_t> rows, std::span<const rng_key> noise,
                    float* out);

/// Calls gather() or gather_vectors(), depending on the kind of data set; `augment` or `noise` is ignored accordingly.
inline void gather_any(const dataset& source, std::span<const std::int64_t> rows, std::span<const augmentation> augment,
                       std::span<const rng_key> noise, float* out) {
  if (source.vectors.defined())
    gather_vectors(source, rows, noise, out);
  else
    gather(source, rows, augment, out);
}

} // namespace mneme
