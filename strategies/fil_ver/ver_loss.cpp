#include "strategies/fil_ver/ver_loss.hpp"
#include "runtime/base/check.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
namespace mneme {
namespace {

// Axes: K models, B rows of a step, D numbers of an embedding; features hold 2 D.

class ver_loss_of final : public loss {
public:
  ver_loss_of(double beta, double low, double high) : beta_(beta), low_(low), high_(high) {
    MNEME_CHECK(beta >= 0.0 && low <= high, beta, low, high);
  }

  [[nodiscard]] std::string identity() const override {
    return fmt::format("cross-entropy + {} KL within {} and {}", beta_, low_, high_); // all digits
  }

  [[nodiscard]] bool reads_label_smoothing() const override { return true; }
  [[nodiscard]] loss_output operator()(const loss_input& in) const override {
    auto out = (*cross_entropy_objective())(in);
    const auto of_labels = out.values.clone();
    if (in.features.is_cpu())
      add_kl(in, out);
    else
      composite_add_kl(in, beta_, low_, high_, out);
    out.terms = {{"cross_entropy", of_labels}, {"kl", out.values - of_labels}};
    return out;
  }

private:
  /// d KL / d mu = mu, d KL / d log sigma = sigma^2 - 1.
  void add_kl(const loss_input& in, loss_output& out) const {
    const auto rows = in.features.size(0) * in.features.size(1), width = in.features.size(2) / 2;
    const auto features = in.features.contiguous(), weight = in.row_weight.contiguous();
    out.d_features = at::zeros(features.sizes(), features.options());
    const float* x = features.const_data_ptr<float>();
    float* d = out.d_features.mutable_data_ptr<float>();
    for (std::int64_t row = 0; row < rows; ++row, x += 2 * width, d += 2 * width) {
      const double share = beta_ * weight.const_data_ptr<float>()[row];
      if (share == 0.0)
        continue;
      out.values.mutable_data_ptr<double>()[row / in.features.size(1)] += share * kl_to_standard(x, width, low_, high_);
      for (std::int64_t i = 0; i < width; ++i) {
        const double log = x[width + i];
        d[i] = static_cast<float>(share * x[i]);
        if (log >= low_ && log <= high_)
          d[width + i] = static_cast<float>(share * std::expm1(2.0 * log));
      }
    }
  }

  double beta_, low_, high_;
};

} // namespace

double kl_to_standard(const float* features, std::int64_t width, double low, double high) {
  double sum = 0.0;
  for (std::int64_t d = 0; d < width; ++d) {
    const double mean = features[d], log = std::clamp<double>(features[width + d], low, high);
    sum += mean * mean + std::expm1(2.0 * log) - 2.0 * log;
  }
  return 0.5 * sum;
}

void composite_add_kl(const loss_input& in, double beta, double low, double high, loss_output& out) {
  const auto width = in.features.size(2) / 2;
  const auto mean = in.features.narrow(2, 0, width), raw = in.features.narrow(2, width, width);
  const auto log = raw.clamp(low, high), variance = (2.0 * log).exp();
  const auto share = in.row_weight.unsqueeze(2) * beta; // [K, B, 1]
  const auto kl = 0.5 * (mean * mean + variance - 1.0 - 2.0 * log);
  const auto outside = (raw < low).logical_or_(raw > high);
  out.values.add_((kl * share).to(at::kDouble).sum({1, 2}));
  out.d_features = at::cat({mean * share, ((variance - 1.0) * share).masked_fill_(outside, 0)}, 2);
}

loss_ref ver_loss(double beta, double low, double high) { return std::make_shared<ver_loss_of>(beta, low, high); }

} // namespace mneme
