#include "runtime/models/low_rank.hpp"
#include "runtime/base/diagnostic.hpp"
#include <ATen/ops/linear.h>
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme {

void low_rank_options::keys(key_table& table, std::vector<std::string> allowed) {
  allowed_ = std::move(allowed);
  table.integer(
      "low_rank", rank_, {.low = 0, .high = 4096},
      "Rank of low-rank adapters (LoRA) of the linear layers in model.low_rank_targets: only these adapters and "
      "the head are trained and sent, the body is sent once; 0: none.");
  table.omit_default_from_digest();
  table.texts(
      "low_rank_targets", targets_,
      fmt::format("Linear layers of each block that have a low-rank adapter, of: {}.", fmt::join(allowed_, ", ")));
  table.omit_default_from_digest();
  table.number("low_rank_alpha", alpha_, {.low = 0.0, .high = 1e6},
               "A low-rank adapter is multiplied by this number / model.low_rank; 0: the adapter is not scaled.");
  table.omit_default_from_digest();
  table.number("low_rank_dropout", dropout_, {.low = 0.0, .high = 0.99},
               "Probability that a value of a low-rank adapter's input is dropped in training.");
  table.omit_default_from_digest();
}

bool low_rank_options::has(std::string_view target) const {
  return is_enabled() && std::find(targets_.begin(), targets_.end(), target) != targets_.end();
}

std::string low_rank_options::error(const std::string& net, std::int64_t width) const {
  const low_rank_options defaults;
  if (!is_enabled()) {
    const auto* const unused = targets_ != defaults.targets_ ? "model.low_rank_targets"
                               : alpha_ != 0.0               ? "model.low_rank_alpha"
                               : dropout_ != 0.0             ? "model.low_rank_dropout"
                                                             : nullptr;
    return unused
               ? fmt::format("{} has no effect, because the net has no low-rank adapters; expected model.low_rank > 0, "
                             "or remove the key",
                             unused)
               : "";
  }
  if (rank_ > width)
    return fmt::format("model.low_rank = {} is more than the {} channels of a token of {}; expected model.low_rank <= "
                       "model.width",
                       rank_, width, net);
  if (targets_.empty())
    return fmt::format("model.low_rank_targets = []: model.low_rank > 0 needs a linear layer; expected at least one "
                       "of {}",
                       fmt::join(allowed_, ", "));
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (std::find(allowed_.begin(), allowed_.end(), targets_[i]) == allowed_.end()) {
      const auto likely = closest_match(targets_[i], allowed_);
      return fmt::format(
          "model.low_rank_targets[{}] = \"{}\" is no linear layer of a block of {}; expected one of {}{}", i,
          targets_[i], net, fmt::join(allowed_, ", "),
          likely.empty() ? "" : fmt::format("; did you mean \"{}\"?", likely));
    }
    if (std::find(targets_.begin(), targets_.begin() + static_cast<std::ptrdiff_t>(i), targets_[i]) !=
        targets_.begin() + static_cast<std::ptrdiff_t>(i))
      return fmt::format("model.low_rank_targets[{}] = \"{}\" is in the list twice; expected each layer once", i,
                         targets_[i]);
  }
  if (has("qkv") && (has("query") || has("key") || has("value")))
    return "model.low_rank_targets: \"qkv\" is the matrix of query, key and value together; expected either \"qkv\" or "
           "some of \"query\", \"key\", \"value\"";
  return "";
}

std::string low_rank_options::text() const {
  if (!is_enabled())
    return "";
  auto targets = targets_;
  std::sort(targets.begin(), targets.end());
  return fmt::format(" low rank {} of {} by {:a} dropout {:a}", rank_, fmt::join(targets, ","), scale(), dropout_);
}

low_rank_parameters make_low_rank(std::string down_name, std::string up_name, std::int64_t in, std::int64_t out,
                                  std::int64_t rank) {
  return {
      .down = {.name = std::move(down_name), .shape = {rank, in}, .bound = 1.0 / std::sqrt(static_cast<double>(in))},
      .up = {.name = std::move(up_name), .shape = {out, rank}}};
}

at::Tensor low_rank_product(const at::Tensor& x, const at::Tensor& down, const at::Tensor& up) {
  return at::linear(at::linear(x, down), up);
}

} // namespace mneme
