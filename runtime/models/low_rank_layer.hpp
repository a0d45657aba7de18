/// low_rank_layer: scale B A x for every token x, the low-rank adapters of a linear layer (low_rank.hpp).
#pragma once
#include "runtime/models/layer.hpp"
namespace mneme {

/// A linear layer may concatenate several matrices, such as those of query, key and value. Each part has an A and a B
/// of its own and writes consecutive output channels; channels without a part are zero. On a CPU LibTorch computes the
/// products, one model at a time, as in tokens_linear_layer.
class low_rank_layer final : public kernel_layer {
public:
  /// Offsets of A [r, in] and B [count, r] within [P], and the channels first .. first + count - 1 of the output.
  struct part {
    std::int64_t down_offset = 0, up_offset = 0, first = 0, count = 0;
  };
  struct shape {
    std::int64_t tokens = 1, in = 0, out = 0, rank = 1;
    double scale = 1.0;
    std::vector<part> parts{}; ///< In ascending order of `first`. The channels of different parts do not overlap.
  };
  explicit low_rank_layer(shape sizes) : shape_(std::move(sizes)) {}
  [[nodiscard]] std::int64_t width(class_range) const override { return shape_.tokens * shape_.out; }
  [[nodiscard]] std::int64_t kept_bytes_per_row() const override;
  [[nodiscard]] bool depends_on_row_count() const override { return true; }
  [[nodiscard]] bool is_function(bool on_cpu) const override { return !on_cpu; }
  /// @param kept receives A x, [K, parts, B tokens, r]
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  [[nodiscard]] bool adds() const override { return true; }
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  [[nodiscard]] bool is_whole(const part& one) const { return one.count == shape_.out; }
  [[nodiscard]] bool covers_all() const;
  [[nodiscard]] at::Tensor down(const at::Tensor& flat, const part& one) const;
  [[nodiscard]] at::Tensor up(const at::Tensor& flat, const part& one) const;

  shape shape_;
};

} // namespace mneme
