#include "strategies/lga/lbfgs.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/kernels/products.hpp"
#include <ATen/ATen.h>
#include <cmath>
namespace mneme {
namespace {

constexpr std::int64_t iterations_max = 20, evaluations_max = 25;
constexpr std::size_t history_max = 100;
constexpr double gradient_tolerance = 1e-7, change_tolerance = 1e-9, curvature_min = 1e-10;

// A step reads a history of two hundred vectors twice: on a CPU the calls of operators would take most of its time.

double product_of(const at::Tensor& a, const at::Tensor& b) {
  if (!a.is_cpu())
    return at::dot(a, b).item<double>();
  double sum = 0.0;
  kernels::add_products(sum, a.const_data_ptr<float>(), b.const_data_ptr<float>(), a.numel());
  return sum;
}

/// to += factor * direction
void add_scaled(at::Tensor& to, const at::Tensor& direction, double factor) {
  if (!to.is_cpu()) {
    to.add_(direction, factor);
    return;
  }
  auto* const values = to.mutable_data_ptr<float>();
  const auto size = to.numel();
  const auto scale = static_cast<float>(factor);
  kernels::multiply({.a = &scale, .b = direction.const_data_ptr<float>(), .before = values, .c = values,
                     .m = 1, .n = size, .k = 1});
}

double largest(const at::Tensor& values) { return values.abs().max().item<double>(); }

} // namespace

/// The two loops of Nocedal 1980 over the history, which gains the newest pair where it is curved enough.
at::Tensor lbfgs::direction(const at::Tensor& gradient) {
  const auto change = gradient - gradient_before_, move = direction_ * length_;
  if (const auto curvature = product_of(change, move); curvature > curvature_min) {
    if (changes_.size() == history_max) {
      changes_.erase(changes_.begin());
      moves_.erase(moves_.begin());
      inverses_.erase(inverses_.begin());
    }
    changes_.push_back(change);
    moves_.push_back(move);
    inverses_.push_back(1.0 / curvature);
    scale_ = curvature / product_of(change, change);
  }
  std::vector<double> shares(changes_.size());
  auto along = -gradient;
  for (auto i = changes_.size(); i-- > 0;) {
    shares[i] = product_of(moves_[i], along) * inverses_[i];
    add_scaled(along, changes_[i], -shares[i]);
  }
  along.mul_(scale_);
  for (std::size_t i = 0; i < changes_.size(); ++i)
    add_scaled(along, moves_[i], shares[i] - product_of(changes_[i], along) * inverses_[i]);
  return along;
}

bool lbfgs::tell(double value, const at::Tensor& gradient) {
  const bool begins = evaluations_ == 0;
  const auto ends = [&] {
    evaluations_ = of_step_ = 0;
    return false;
  };
  ++evaluations_;
  const bool is_flat = largest(gradient) <= gradient_tolerance;
  if (begins && is_flat)
    return ends();
  if (!begins && (evaluations_ >= evaluations_max || is_flat || largest(direction_ * length_) <= change_tolerance ||
                  std::abs(value - value_before_) < change_tolerance))
    return ends();

  ++of_step_;
  if (++iterations_ == 1)
    direction_ = -gradient;
  else
    direction_ = direction(gradient);
  gradient_before_ = gradient.clone();
  value_before_ = value;
  length_ = iterations_ == 1 ? std::min(1.0, 1.0 / gradient.abs().sum().item<double>()) * rate_ : rate_;
  if (product_of(gradient, direction_) > -change_tolerance)
    return ends();
  x_ = x_ + direction_ * length_;
  return of_step_ == iterations_max ? ends() : true; // the last point of a step is evaluated by the next one
}

std::map<std::string, at::Tensor> lbfgs::save() const {
  std::map<std::string, at::Tensor> saved{{"x", x_}};
  if (direction_.defined()) {
    saved["direction"] = direction_;
    saved["gradient"] = gradient_before_;
  }
  if (!changes_.empty()) {
    saved["changes"] = at::stack(changes_);
    saved["moves"] = at::stack(moves_);
    saved["inverses"] = at::tensor(inverses_, at::kDouble);
  }
  saved["numbers"] = at::tensor(std::vector<double>{rate_, length_, scale_, value_before_,
                                                    static_cast<double>(iterations_), static_cast<double>(of_step_),
                                                    static_cast<double>(evaluations_)},
                                at::kDouble);
  return saved;
}

void lbfgs::load(const std::map<std::string, at::Tensor>& saved) {
  x_ = saved.at("x");
  if (saved.contains("direction")) {
    direction_ = saved.at("direction");
    gradient_before_ = saved.at("gradient");
  }
  if (saved.contains("changes")) {
    changes_ = saved.at("changes").unbind(0);
    moves_ = saved.at("moves").unbind(0);
    const auto inverses = saved.at("inverses").cpu();
    inverses_.assign(inverses.const_data_ptr<double>(), inverses.const_data_ptr<double>() + inverses.numel());
  }
  const auto numbers = saved.at("numbers").cpu();
  const auto* const at = numbers.const_data_ptr<double>();
  rate_ = at[0], length_ = at[1], scale_ = at[2], value_before_ = at[3];
  iterations_ = static_cast<std::int64_t>(at[4]), of_step_ = static_cast<std::int64_t>(at[5]);
  evaluations_ = static_cast<std::int64_t>(at[6]);
}

} // namespace mneme
