/// frozen_vit: a vision transformer whose own weights never learn; what learns is put into its attention, and stands
/// behind it.
///
/// A. Dosovitskiy et al., "An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale", ICLR 2021.
#pragma once
#include "runtime/models/function_net.hpp"
#include <functional>
namespace mneme {

// Axes: B rows of a step, N tokens of an image, d channels of a token, H heads.

struct vit_shape {
  std::array<std::int64_t, 3> input{};   ///< C, H, W of the images.
  std::array<std::int64_t, 2> resized{}; ///< Height and width that they are resized to, bilinear.
  std::int64_t patch = 16, width = 768, depth = 12, heads = 12;

  /// Part of a net's identity.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::int64_t tokens() const { return 1 + (resized[0] / patch) * (resized[1] / patch); }
};

/// Parameters of the transformer lie first, frozen, as `body` has them. Features are the class token behind the last
/// norm, d of them.
class frozen_vit : public function_net {
public:
  [[nodiscard]] std::int64_t feature_width() const noexcept override { return shape_.width; }
  [[nodiscard]] std::int64_t classes() const noexcept override { return classes_; }
  /// Places in the layout of a block's weight of queries, keys and values [3 d, d], in this order.
  [[nodiscard]] std::size_t attention_weight(std::int64_t block) const;

protected:
  /// @param body layout of the transformer without its head
  frozen_vit(vit_shape shape, const std::vector<parameter>& body, std::int64_t classes);

  /// What a block's attention computes with, by head.
  struct attention_heads {
    at::Tensor queries, keys, values; ///< [B, H, N, d / H]
  };
  /// Changes them. @param normed the block's tokens behind its first norm, [B, N, d]
  using attention_change = std::function<void(std::int64_t block, const at::Tensor& normed, attention_heads& heads)>;
  /// The class token behind the last norm, [B, d]. @param change null: the transformer as it is
  [[nodiscard]] at::Tensor class_token(const model_pass& pass, const attention_change& change) const;
  /// [B, .., d] -> [B, H, .., d / H]
  [[nodiscard]] at::Tensor by_head(const at::Tensor& tokens) const;

  [[nodiscard]] const vit_shape& shape() const { return shape_; }
  [[nodiscard]] std::array<std::int64_t, 3> input() const override { return shape_.input; }
  /// Floats that a row needs until the backward pass, about. @param further keys and values beside an image's own
  [[nodiscard]] std::int64_t row_floats_with(std::int64_t further) const;

private:
  [[nodiscard]] std::size_t place_of(const std::string& name) const;
  [[nodiscard]] at::Tensor embedded(const model_pass& pass) const;
  [[nodiscard]] at::Tensor attention(const model_pass& pass, std::int64_t block, const at::Tensor& x,
                                     const attention_change& change) const;

  vit_shape shape_;
  std::int64_t classes_;
  // Places in the layout.
  std::vector<std::size_t> blocks_; // first parameter of each: they lie side by side
  std::size_t embedding_ = 0, norm_ = 0;
};

} // namespace mneme
