/// low_rank: keys, parameters and formula of low-rank adapters (LoRA) of a net's linear layers.
///
/// E. Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022.
#pragma once
#include "runtime/models/model.hpp"
namespace mneme {

// Axes: M rows or tokens, in and out channels of a linear layer, r rank.

/// Keys of nets whose body is frozen and has low-rank adapters: y = x W^T + b + scale() B A dropout(x), with A [r, in]
/// and B [out, r]. Adapters and head are trained.
class low_rank_options {
public:
  /// Declares model.low_rank and the other keys. @param allowed words of model.low_rank_targets
  void keys(key_table& table, std::vector<std::string> allowed);

  [[nodiscard]] bool is_enabled() const noexcept { return rank_ > 0; }
  [[nodiscard]] std::int64_t rank() const noexcept { return rank_; }
  /// Factor of B A: alpha / rank (section 4.1).
  [[nodiscard]] double scale() const { return alpha_ > 0.0 ? alpha_ / static_cast<double>(rank_) : 1.0; }
  /// Probability that a value of x is dropped in training.
  [[nodiscard]] double dropout() const noexcept { return dropout_; }
  /// True if model.low_rank_targets contains the word.
  [[nodiscard]] bool has(std::string_view target) const;
  /// Returns the error of the keys, which names them; "" if there is none. @param width channels of a token
  [[nodiscard]] std::string error(const std::string& net, std::int64_t width) const;
  /// Suffix of the net's identity; "" without low-rank adapters.
  [[nodiscard]] std::string text() const;

private:
  std::int64_t rank_ = 0;
  std::vector<std::string> targets_{"query", "value"}, allowed_;
  double alpha_ = 0.0, dropout_ = 0.0;
};

/// The parameters A and B of a low-rank adapter.
struct low_rank_parameters {
  parameter down{}, up{};
};
/// A is drawn from U(-1 / sqrt(in), 1 / sqrt(in)), as by PyTorch's Linear and by peft; B is zero, so that the initial
/// net has the same outputs as its body.
[[nodiscard]] low_rank_parameters make_low_rank(std::string down_name, std::string up_name, std::int64_t in,
                                                std::int64_t out, std::int64_t rank);

/// Returns B A x [.., out] for each row x [.., in]. @param down A [r, in] @param up B [out, r]
[[nodiscard]] at::Tensor low_rank_product(const at::Tensor& x, const at::Tensor& down, const at::Tensor& up);

} // namespace mneme
