#include "strategies/stsa/statistics_sums.hpp"
#include "runtime/base/archive.hpp"
#include "runtime/base/triangle.hpp"
#include "strategies/stsa/upload_privacy.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <algorithm>
namespace mneme {
namespace {

constexpr double bytes_of_float = 4.0, bytes_of_mib = 1024.0 * 1024.0;

double mib_of(double floats) { return floats * bytes_of_float / bytes_of_mib; }

void add_to(at::Tensor& sum, const at::Tensor& value) {
  if (!sum.defined())
    sum = at::zeros_like(value);
  sum.add_(value);
}

} // namespace

void statistics_sums::begin(const at::TensorOptions& options) {
  if (gram_.defined())
    return;
  gram_ = at::zeros({triangle_size(size_.width)}, options);
  sums_ = at::zeros({size_.classes, size_.width}, options);
}

void statistics_sums::record_task(const round_info& info) {
  tasks_ended_ += 1.0;
  classes_ended_ += static_cast<double>(info.current_classes.size());
}

void statistics_sums::persist(archive& state) { state(gram_)(sums_)(tasks_ended_)(classes_ended_); }

// -- STSA -------------------------------------------------------------------------------------------------------------

void exact_sums::add(const delivery& in) {
  present_.push_back(in.from);
  const auto &gram = in.upload->at("gram"), &sums = in.upload->at("sums");
  if (rules_.masked) { // masked integers wrap around and are summed separately until complete
    add_to(masked_gram_, gram);
    add_to(task_sums_, sums);
    return;
  }
  if (is_empty(in))
    return;

  begin(gram.options());
  gram_.add_(gram);         // G <- G + G_k (eq. 7)
  add_to(task_sums_, sums); // sum_k C_k, of the task's classes
}

void exact_sums::add_late(const delivery& in, class_range classes) {
  if (rules_.masked || is_empty(in))
    return;
  const auto &gram = in.upload->at("gram"), &sums = in.upload->at("sums");
  begin(gram.options());
  gram_.add_(gram);
  sums_.narrow(0, classes.low, classes.size()).add_(sums.view({classes.size(), size_.width}));
}

task<void> exact_sums::end_task(server_context&, const round_info& info) {
  begin(at::kDouble);
  if (rules_.masked)
    unmask(info.task);

  // C <- C + sum_k C_k (eq. 8). Columns of other classes are zero and are not sent.
  if (task_sums_.defined())
    sums_.narrow(0, info.current_classes.low, info.current_classes.size())
        .add_(task_sums_.view({info.current_classes.size(), size_.width}));
  task_sums_ = at::Tensor{};
  present_.clear();
  record_task(info);
  co_return;
}

void exact_sums::unmask(task_id task) {
  if (!task_sums_.defined())
    return;
  std::sort(present_.begin(), present_.end());
  auto ring = rules_.ring;
  ring.key.task = task;
  ring.key.index = mask_index("gram");
  gram_.add_(remove_masks(masked_gram_, present_, ring));
  ring.key.index = mask_index("sums");
  task_sums_ = remove_masks(task_sums_, present_, ring);
  masked_gram_ = at::Tensor{};
}

/// The paper counts a square G_k, so M^2 + M c floats per task; a triangle would suffice.
void exact_sums::add_figures(std::map<std::string, double>& figures) const {
  const auto m = width();
  figures["paper_upload_mib"] = mib_of(tasks_ended() * m * m + m * classes_ended());
  figures["paper_upload_triangle_mib"] = mib_of(tasks_ended() * m * (m + 1.0) / 2.0 + m * classes_ended());
}

void exact_sums::persist(archive& state) {
  statistics_sums::persist(state);
  state(masked_gram_)(task_sums_)(present_);
}

// -- STSA-E -----------------------------------------------------------------------------------------------------------

void estimated_sums::add(const delivery& in) {
  ++clients_;
  held_.add(in.upload->at("sums"), in.upload->at("counts"));
}

task<void> estimated_sums::end_task(server_context& ctx, const round_info& info) {
  begin(at::kDouble);

  // C <- C + sum_k C_k (eq. 8).
  held_.add_to(sums_, info.current_classes.low);

  // G <- G + estimated sum_k G_k (eqs. 10, 11, 7).
  auto asked = held_.take(gram_, clients_ * dummies_, rules_);
  auto estimating = ctx.compute({.name = "estimate", .run = &estimate_grams, .in = asked});
  auto estimated = co_await estimating;
  gram_ = estimated.out->at("gram");
  clients_ = 0;
  record_task(info);
}

/// P (M c + c) floats per task.
void estimated_sums::add_figures(std::map<std::string, double>& figures) const {
  figures["paper_upload_mib"] = mib_of(static_cast<double>(dummies_) * (width() + 1.0) * classes_ended());
}

void estimated_sums::persist(archive& state) {
  statistics_sums::persist(state);
  state(held_)(clients_);
}

} // namespace mneme
