/// frozen_vit: a vision transformer with frozen weights; derived nets add trainable parts to its attention and a head.
///
/// A. Dosovitskiy et al., "An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale", ICLR 2021.
#pragma once
#include "runtime/models/function_net.hpp"
#include <functional>
namespace mneme {

// Axes: B rows of a step, N tokens of an image, d channels of a token, H heads.

/// Sizes of a vision transformer: patch in pixels, width in channels, depth in blocks.
struct vit_shape {
  std::array<std::int64_t, 3> input{};   ///< C, H, W of the images.
  std::array<std::int64_t, 2> resized{}; ///< Height and width in pixels after bilinear resizing.
  std::int64_t patch = 16, width = 768, depth = 12, heads = 12;

  /// Text of the sizes, for a net's identity.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::int64_t tokens() const { return 1 + (resized[0] / patch) * (resized[1] / patch); }
};

/// The frozen parameters of the transformer come first in the layout, as listed in `body`. The features are the d
/// numbers of the class token after the last norm.
class frozen_vit : public function_net {
public:
  [[nodiscard]] std::int64_t feature_width() const noexcept override { return shape_.width; }
  [[nodiscard]] std::int64_t classes() const noexcept override { return classes_; }
  /// Layout index of a block's weight [3 d, d] of queries, keys and values, in this order.
  [[nodiscard]] std::size_t attention_weight(std::int64_t block) const;

protected:
  /// @param body layout of the transformer without its head
  frozen_vit(vit_shape shape, const std::vector<parameter>& body, std::int64_t classes);

  /// Queries, keys and values of a block's attention, split by head.
  struct attention_heads {
    at::Tensor queries, keys, values; ///< [B, H, N, d / H]
  };
  /// Changes a block's heads in place. @param normed the block's tokens after its first norm, [B, N, d]
  using attention_change = std::function<void(std::int64_t block, const at::Tensor& normed, attention_heads& heads)>;
  /// Returns the class token after the last norm, [B, d]. @param change called in every block; null: no change
  [[nodiscard]] at::Tensor class_token(const model_pass& pass, const attention_change& change) const;
  /// Splits the channels by head: [B, .., d] -> [B, H, .., d / H].
  [[nodiscard]] at::Tensor by_head(const at::Tensor& tokens) const;

  [[nodiscard]] const vit_shape& shape() const { return shape_; }
  [[nodiscard]] std::array<std::int64_t, 3> input() const override { return shape_.input; }
  /// Estimated floats per row that a pass keeps until the backward pass. @param further keys and values per block in
  /// addition to those of the image's tokens
  [[nodiscard]] std::int64_t row_floats_with(std::int64_t further) const;

private:
  [[nodiscard]] std::size_t place_of(const std::string& name) const;
  [[nodiscard]] at::Tensor embedded(const model_pass& pass) const;
  [[nodiscard]] at::Tensor attention(const model_pass& pass, std::int64_t block, const at::Tensor& x,
                                     const attention_change& change) const;

  vit_shape shape_;
  std::int64_t classes_;
  // Indices in the layout.
  std::vector<std::size_t> blocks_; // first parameter of each block; a block's parameters are adjacent
  std::size_t embedding_ = 0, norm_ = 0;
};

} // namespace mneme
