#include "runtime/modules/module_probe.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/base/rng.hpp"
#include "runtime/modules/exported_archive.hpp"
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/autograd.h>
namespace mneme {
namespace {

using differences = std::vector<std::string>;

constexpr std::int64_t rows_max = 16;      // rows per call; enough for efficient convolutions
constexpr double rounding_max = 1e-3;      // largest relative difference that rounding alone may cause
constexpr std::uint64_t trial_seed = 2026; // fixed, so that synthetic rows are equal in every run

constexpr std::int64_t own_rows_max = 4096, own_numbers_max = std::int64_t{1} << 28; // limits of rows per call, and of
                                                                                     // values per row

/// Checks the rows that a module declares. Returns the error, or "".
std::string rows_error(const std::vector<std::int64_t>& rows) {
  if (rows.empty())
    return "the module does not declare the shape of its rows; expected a buffer `rows`, four integers [B, C, H, W], "
           "as "
           "tools/research/export/picture_parts.py writes it";
  double numbers = 1.0;
  for (std::size_t i = 1; i < rows.size(); ++i)
    numbers *= static_cast<double>(std::max<std::int64_t>(rows[i], 0));
  if (rows.size() != 4 || rows[0] < 1 || rows[0] > own_rows_max || numbers < 1.0 ||
      numbers > static_cast<double>(own_numbers_max))
    return fmt::format("the module's buffer `rows` is [{}]; expected [B, C, H, W] with B from 1 to {}",
                       fmt::join(rows, ", "), own_rows_max);
  return "";
}

/// Synthetic rows: normally distributed values, or random tokens that include the largest token.
at::Tensor synthetic_rows(std::int64_t rows, const module_rows& shown) {
  auto images = at::empty({rows, shown.input[0], shown.input[1], shown.input[2]}, at::kFloat);
  const auto values = std::span(images.mutable_data_ptr<float>(), static_cast<std::size_t>(images.numel()));
  rng_stream draw({.seed = trial_seed});
  const bool is_tokens = shown.form == row_form::tokens;
  for (auto& value : values)
    value = is_tokens ? static_cast<float>(draw.below(static_cast<std::uint64_t>(shown.tokens)))
                      : static_cast<float>(draw.normal());
  if (is_tokens && !values.empty())
    values.front() = static_cast<float>(shown.tokens - 1);
  return in_form(images, shown.form);
}

/// Adds up the bytes of all operator results on this thread during its lifetime.
class byte_count {
public:
  byte_count() : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(nullptr, &count).needsOutputs(true))) {
    counted = 0;
  }
  ~byte_count() { at::removeCallback(handle_); }
  byte_count(const byte_count&) = delete;
  byte_count& operator=(const byte_count&) = delete;
  [[nodiscard]] static std::int64_t value() { return counted; }

private:
  static void count(const at::RecordFunction& called, at::ObserverContext*) {
    for (const auto& value : called.outputs())
      if (value.isTensor() && value.toTensor().defined())
        counted += static_cast<std::int64_t>(value.toTensor().nbytes());
  }
  static thread_local std::int64_t counted;
  at::CallbackHandle handle_;
};
thread_local std::int64_t byte_count::counted = 0;

/// State of a probe in progress.
class trial {
public:
  trial(const module_graph& graph, const module_rows& rows, const at::Device& device, std::int64_t most)
      : graph_(graph), shown_rows_(rows), count_(most), rows_(synthetic_rows(count_, rows).to(device)) {
    for (const auto& held : graph.tensors()) {
      values_.push_back(held.value);
      versions_.push_back(held.value._version());
    }
  }

  tl::expected<probe_result, differences> run(const probe_requirements& requirements) {
    check_types();
    const bool in_training = requirements.trained && requirements.training && graph_.has_training_mode();
    if (in_training)
      check_draws();
    if (errors_.empty())
      choose_rows();
    if (errors_.empty() && requirements.trained)
      check_gradients(in_training);
    if (!errors_.empty())
      return tl::unexpected(errors_);
    return found_;
  }

private:
  void check_types() {
    for (const auto& held : graph_.tensors())
      if (held.parameter && held.value.scalar_type() != at::kFloat)
        errors_.push_back(fmt::format("parameter '{}' is {}; expected float32: call net.float() before it is exported",
                                      held.name, c10::toString(held.value.scalar_type())));
  }

  /// Returns forward() of a copy of these rows, without gradients. Does not catch exceptions of the graph.
  [[nodiscard]] at::Tensor called(const at::Tensor& rows) const {
    const at::NoGradGuard no_gradients;
    return graph_.run(rows.clone(), values_);
  }

  /// Chooses several rows per call if a row's result does not depend on its position; otherwise one row per call.
  void choose_rows() {
    const auto first = probe_call(rows_);
    if (!first)
      return choose_single_rows();
    if (!check_form(*first, count_))
      return;
    const auto again = called(rows_);
    if (!at::equal(*first, again))
      return not_repeatable();
    check_written();
    if (!places_differ(*first))
      return note(*first, count_);
    choose_single_rows();
    if (errors_.empty() && !agree(*first))
      errors_.emplace_back(
          "the result of a row depends on the other rows of its call by more than rounding, in evaluation mode: batch "
          "statistics, for example (track_running_stats = False); expected results that follow from the row alone");
  }

  std::optional<at::Tensor> probe_call(const at::Tensor& rows) {
    std::optional<at::Tensor> result;
    if (auto reason = torch_error_of([&] { result = called(rows); }); !reason.empty())
      failure_ = std::move(reason);
    return result;
  }

  void choose_single_rows() {
    const auto single = probe_call(rows_.narrow(0, 0, 1));
    if (!single)
      return record_failure(count_);
    if (!check_form(*single, 1))
      return;
    if (!at::equal(*single, called(rows_.narrow(0, 0, 1))))
      return not_repeatable();
    check_written();
    note(*single, 1);
  }

  void record_failure(std::int64_t rows) {
    errors_.push_back(
        fmt::format("forward failed on rows {}: {}", rows_text(rows_.narrow(0, 0, rows), shown_rows_), failure_));
    if (graph_.fixed_rows() > 0)
      errors_.back() += fmt::format("; it was exported for calls of {} rows: give dynamic_shapes, as in {}",
                                    graph_.fixed_rows(), exported::export_line);
  }

  void not_repeatable() {
    errors_.emplace_back(
        "forward returned other numbers when it was called again with the same rows; a result must follow "
        "from the rows and the weights alone");
  }

  /// True if the results are [rows, D] float32, finite, and on the device of the rows.
  bool check_form(const at::Tensor& scores, std::int64_t rows) {
    const auto before = errors_.size();
    if (scores.dim() != 2 || scores.size(0) != rows || scores.size(1) < 1)
      errors_.push_back(
          fmt::format("forward returned shape [{}] for rows {}; expected [{}, D]: end it with torch.flatten(x, 1)",
                      fmt::join(scores.sizes(), ", "), rows_text(rows_.narrow(0, 0, rows), shown_rows_), rows));
    if (scores.scalar_type() != at::kFloat)
      errors_.push_back(fmt::format("forward returned {}; expected float32", c10::toString(scores.scalar_type())));
    if (scores.device() != rows_.device())
      errors_.push_back(fmt::format("forward returned a tensor on {} for rows on {}; was it traced on another device?",
                                    scores.device().str(), rows_.device().str()));
    if (errors_.size() == before && !at::isfinite(scores).all().item<bool>())
      errors_.emplace_back(
          "forward returned values that are NaN or infinite for rows around 0; are its weights intact?");
    return errors_.size() == before;
  }

  /// True if a row's result changes when rows are reversed, or when half of them are shifted and the rest set to zero.
  [[nodiscard]] bool places_differ(const at::Tensor& first) const {
    if (count_ < 2)
      return false;
    if (!at::equal(called(rows_.flip(0)).flip(0), first))
      return true;
    const auto half = count_ / 2;
    auto moved = at::zeros_like(rows_);
    moved.narrow(0, half - 1, half).copy_(rows_.narrow(0, 0, half));
    return !at::equal(called(moved).narrow(0, half - 1, half), first.narrow(0, 0, half));
  }

  /// True if single rows give the same results as the whole batch, up to rounding.
  [[nodiscard]] bool agree(const at::Tensor& together) const {
    for (std::int64_t i = 0; i < count_; ++i) {
      const auto alone = called(rows_.narrow(0, i, 1))[0], beside = together[i];
      if ((alone - beside).abs().max().item<double>() > rounding_max * (1.0 + beside.abs().max().item<double>()))
        return false;
    }
    return true;
  }

  void check_written() {
    differences names;
    for (std::size_t i = 0; i < values_.size(); ++i)
      if (values_[i]._version() != versions_[i])
        names.push_back(graph_.tensors()[i].name);
    for (const auto& name : names)
      errors_.push_back(fmt::format("forward writes to '{}'; a result must not depend on earlier calls", name));
  }

  /// Checks the number of random masks: the index of a mask has only 8 bits in a random key.
  void check_draws() {
    constexpr std::int64_t draws_max = 256;
    constexpr const char* advice = "; with model.module_training = false it is trained in evaluation mode";
    if (const auto call = graph_.unseeded_draw(); !call.empty())
      errors_.push_back(
          fmt::format("{} draws from LibTorch's generator in training, so no run could be reproduced; expected "
                      "dropout, and dropout of attention or between the layers of an LSTM or GRU{}",
                      call, advice));
    if (graph_.draws() > draws_max)
      errors_.push_back(
          fmt::format("forward draws {} masks in training; expected at most {}{}", graph_.draws(), draws_max, advice));
  }

  void check_gradients(bool in_training) {
    std::vector<at::Tensor> values, leaves;
    for (const auto& held : graph_.tensors()) {
      values.push_back(held.value.clone());
      if (held.parameter && held.trains)
        leaves.push_back(values.back().requires_grad_(true));
    }
    if (leaves.empty())
      return;
    const auto reason = torch_error_of([&] {
      const auto rows = std::min<std::int64_t>(in_training ? count_ : found_.rows_at_once, 3);
      const auto result = graph_.run(rows_.narrow(0, 0, rows).clone(), values, {.training = in_training});
      if (result.dim() != 2 || result.size(0) != rows || result.size(1) != found_.width)
        errors_.push_back(fmt::format("forward returned shape [{}] in training mode; expected [{}, {}]",
                                      fmt::join(result.sizes(), ", "), rows, found_.width));
      const auto sum = result.sum();
      std::vector<at::Tensor> gradients;
      if (sum.requires_grad())
        gradients = torch::autograd::grad({sum}, leaves, {}, false, false, true);
      if (std::none_of(gradients.begin(), gradients.end(),
                       [](const at::Tensor& gradient) { return gradient.defined(); }))
        errors_.emplace_back(
            "no gradient reaches its parameters, so they cannot be trained; model.trainable = \"head\" "
            "leaves them as they are");
    });
    if (!reason.empty())
      errors_.push_back("forward cannot be trained through: " + reason +
                        "; model.trainable = \"head\" leaves its parameters as they are");
  }

  void note(const at::Tensor& result, std::int64_t rows) {
    found_ = {.width = result.size(1), .rows_at_once = rows};
    const byte_count counting;
    static_cast<void>(called(rows_.narrow(0, 0, rows)));
    found_.row_bytes = byte_count::value() / rows;
  }

  const module_graph& graph_;
  module_rows shown_rows_;
  std::int64_t count_; // B
  at::Tensor rows_;    // [B, ...], as forward() receives them
  std::vector<at::Tensor> values_;
  std::vector<std::uint32_t> versions_; // versions of the values before the first call
  std::string failure_;                 // error text of the last failed call
  differences errors_;
  probe_result found_;
};

} // namespace

tl::expected<probe_rows, std::string> rows_of_trial(const module_graph& graph, const module_rows& rows, bool own) {
  if (!own)
    return probe_rows{.rows = rows};
  const auto own_rows = graph.own_rows();
  if (auto error = rows_error(own_rows); !error.empty())
    return tl::unexpected(std::move(error));
  return probe_rows{.rows = {.input = {own_rows[1], own_rows[2], own_rows[3]}}, .most = own_rows[0]};
}

tl::expected<probe_result, std::vector<std::string>> probe_module(const module_graph& graph, const module_rows& rows,
                                                                  const at::Device& device,
                                                                  const probe_requirements& requirements) {
  const auto most = requirements.rows_max > 0 ? std::min(requirements.rows_max, rows_max) : rows_max;
  return trial(graph, rows, device, most).run(requirements);
}

} // namespace mneme
