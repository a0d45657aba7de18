#include "runtime/method/differentiable_loss.hpp"
#include "runtime/base/autograd_on.hpp"
#include "runtime/base/check.hpp"
#include <ATen/ATen.h>
namespace mneme {
namespace {

/// Selects the rows of one model that are not padding.
class row_choice {
public:
  row_choice(const at::Tensor& labels, bool is_padded) : rows_(labels.size(0)) { // [B]
    if (!is_padded)
      return;
    const auto is_real = labels >= 0;
    if (!is_real.all().item<bool>())
      real_ = is_real.nonzero().flatten();
  }
  [[nodiscard]] bool empty() const { return real_.defined() && real_.numel() == 0; }
  /// Selects these rows of `whole` [B, ...]. An undefined tensor stays undefined.
  [[nodiscard]] at::Tensor of(const at::Tensor& whole) const {
    return whole.defined() && real_.defined() ? whole.index_select(0, real_) : whole;
  }
  /// Writes `rows` [R, ...] back to their positions in `whole` [B, ...].
  void write(const at::Tensor& rows, at::Tensor whole) const {
    if (real_.defined())
      whole.index_copy_(0, real_, rows);
    else
      whole.copy_(rows);
  }
  [[nodiscard]] std::int64_t padded_rows() const noexcept { return rows_; }

private:
  std::int64_t rows_;
  at::Tensor real_{}; // [R] indices; undefined: all rows
};

at::Tensor of_model(const at::Tensor& whole, std::int64_t k) { return whole.defined() ? whole[k] : whole; }

/// An autograd leaf with an aligned copy of the rows. The alignment matters, because the bits of MKL's products may
/// depend on it.
at::Tensor leaf(const at::Tensor& rows) {
  return rows.defined() ? rows.detach().clone(at::MemoryFormat::Contiguous).requires_grad_(true) : rows;
}

loss_rows rows_of(const loss_input& in, std::int64_t k, const row_choice& real, const loss_traits& traits) {
  const auto part = [&](const at::Tensor& whole) { return real.of(of_model(whole, k)); };
  const auto positions = at::arange(real.padded_rows(), in.labels.options());
  const auto logits = part(in.logits);
  loss_rows rows{.logits = leaf(logits),
                 .head_logits = traits.reads_head_logits ? leaf(logits) : at::Tensor{},
                 .features = traits.reads_features ? leaf(part(in.features)) : at::Tensor{},
                 .labels = part(in.labels),
                 .weight = part(in.row_weight),
                 .is_replayed = real.of(positions >= real.padded_rows() - in.replayed),
                 .targets = part(in.targets),
                 .label_smoothing = in.label_smoothing,
                 .auxiliary = in.auxiliaries.empty() ? nullptr : in.auxiliaries[static_cast<std::size_t>(k)].get()};
  for (const auto& map : in.maps)
    rows.maps.push_back(leaf(part(map)));
  for (const auto& teacher : in.teachers) {
    auto& shown =
        rows.teachers.emplace_back(activations{.features = part(teacher.features), .logits = part(teacher.logits)});
    for (const auto& map : teacher.maps)
      shown.maps.push_back(part(map));
  }
  return rows;
}

/// Zeros with the shape of `like`; undefined if `like` is undefined.
at::Tensor zeros_of(const at::Tensor& like) {
  return like.defined() ? at::zeros(like.sizes(), like.options()) : at::Tensor{};
}

/// Writes the gradient with respect to `rows`, if any, to the entries of model k in `whole`.
void write_gradient(const at::Tensor& rows, const row_choice& real, std::int64_t k, const at::Tensor& whole) {
  if (rows.defined() && rows.grad().defined())
    real.write(rows.grad(), whole[k]);
}

/// The sum of the loss terms; undefined if all terms are 0. Records the value of each term for model k.
at::Tensor sum_of(const std::vector<at::Tensor>& values, const loss_rows& rows, std::int64_t k, loss_output& out) {
  at::Tensor total;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i].defined())
      continue;
    const auto term = values[i].dim() == 0 ? values[i].to(at::kDouble) : weighted_sum(values[i], rows.weight);
    out.terms[i].value[k].copy_(term.detach());
    total = total.defined() ? total + term : term;
  }
  return total;
}

} // namespace

at::Tensor loss_rows::equal_weight() const {
  return at::full_like(weight, 1.0 / static_cast<double>(std::max<std::int64_t>(count(), 1)));
}

at::Tensor weighted_sum(const at::Tensor& values, const at::Tensor& weight) {
  return (values * weight).sum(at::kDouble);
}

loss_output differentiable_loss::operator()(const loss_input& in) const {
  loss_output out{.d_logits = zeros_of(in.logits),
                  .d_features = traits_.reads_features ? zeros_of(in.features) : at::Tensor{},
                  .d_head_logits = traits_.reads_head_logits ? zeros_of(in.logits) : at::Tensor{}};
  for (const auto& map : in.maps)
    out.d_maps.push_back(zeros_of(map));
  const auto models = in.labels.size(0);
  for (const auto* const name : traits_.terms)
    out.terms.push_back({name, at::zeros({models}, in.row_weight.options().dtype(at::kDouble))});
  for (std::int64_t k = 0; k < models; ++k) {
    const row_choice real(in.labels[k], in.is_padded);
    if (real.empty())
      continue;
    const autograd_on gradients;
    const auto rows = rows_of(in, k, real, traits_);
    const auto values = formula_(rows);
    MNEME_CHECK(values.size() == traits_.terms.size(), traits_.identity, values.size());
    if (const auto total = sum_of(values, rows, k, out); total.defined() && total.requires_grad())
      total.backward();
    write_gradient(rows.logits, real, k, out.d_logits);
    write_gradient(rows.head_logits, real, k, out.d_head_logits);
    write_gradient(rows.features, real, k, out.d_features);
    for (std::size_t m = 0; m < in.maps.size(); ++m)
      write_gradient(rows.maps[m], real, k, out.d_maps[m]);
  }
  out.values = out.terms.front().value.clone();
  for (std::size_t i = 1; i < out.terms.size(); ++i)
    out.values += out.terms[i].value;
  if (out.terms.size() == 1)
    out.terms.clear();
  return out;
}

loss_ref differentiable_objective(loss_traits traits, loss_formula formula) {
  return std::make_shared<differentiable_loss>(std::move(traits), std::move(formula));
}

} // namespace mneme
