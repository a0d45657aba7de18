#include "runtime/passes.hpp"
#include "runtime/check.hpp"
#include <ATen/ATen.h>
#include <bit>
#include <cmath>
#include <functional>
namespace mneme {
namespace {

// Axes: n rows of a job, b rows of a block, D features, C classes, M projected width.

/// What a block of rows shows.
struct block {
  std::int64_t first = 0, rows = 0; ///< Within the job.
  at::Tensor features{};            ///< [b, D]
  at::Tensor logits{};              ///< [b, classes], or undefined
};

struct pass_over {
  const model& net;
  const tensors_ref& weights;
  const sample_view& samples;
  class_range classes{};
};

/// Calls `use` with every block in order; what it is given lasts for the call.
void for_each_block(const pass_over& what, image_store& images, const std::function<void(const block&)>& use) {
  if (what.samples.size() == 0)
    return;
  const auto device = images.device();
  const auto weights = what.weights->at(flat_weights).to(device).unsqueeze(0); // [1, P]
  const auto [channels, height, width] = what.samples.source->shape();
  const std::span rows(*what.samples.rows);
  tape kept; // lets blocks share their memory
  kept.for_backward = false;
  const auto block_rows = block_rows_of(what.net);
  for (std::int64_t first = 0; first < what.samples.size(); first += block_rows) {
    const auto count = std::min(block_rows, what.samples.size() - first);
    auto inputs = at::empty({count, channels, height, width}, at::TensorOptions(at::kFloat).device(device));
    images.gather_into(inputs, what.samples.source,
                       rows.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)), {});
    const auto seen = what.net.forward(weights, inputs.unsqueeze(0), what.classes, &kept);
    use({.first = first,
         .rows = count,
         .features = seen.features[0],
         .logits = seen.logits.defined() ? seen.logits[0] : at::Tensor{}});
  }
}

std::int64_t label_of(const sample_view& samples, std::int64_t i) {
  return samples.source->label((*samples.rows)[static_cast<std::size_t>(i)]);
}

/// The block's labels, [b] int64, each below `classes`.
at::Tensor labels_of(const sample_view& samples, const block& seen, std::int64_t classes) {
  auto labels = at::empty({seen.rows}, at::kLong);
  for (std::int64_t i = 0; i < seen.rows; ++i) {
    const auto label = label_of(samples, seen.first + i);
    if (label < 0 || label >= classes)
      throw std::invalid_argument("row " + std::to_string(seen.first + i) + " of the job has label " +
                                  std::to_string(label) + ", but there are " + std::to_string(classes) + " classes");
    labels.mutable_data_ptr<std::int64_t>()[i] = label;
  }
  return labels;
}

/// Adds rows h [b, M] to the sums of their classes.
void add_by_class(const at::Tensor& h, const at::Tensor& labels, statistics_output& out) {
  const auto one_hot = at::one_hot(labels, out.sums.size(0)).to(out.sums.options()); // [b, C]
  out.counts.add_(one_hot.sum(0));
  if (h.is_cpu())
    out.sums.index_add_(0, labels, h); // row by row
  else
    out.sums.addmm_(one_hot.t(), h); // atomics, as index_add_ has them there, would sum in any order
}

class_range all_classes(const model& net) { return {0, net.classes()}; }

/// Softmax cross-entropy of one row in double.
double loss_of(const float* logits, std::int64_t classes, std::int64_t label) {
  const double top = *std::max_element(logits, logits + classes);
  double sum = 0.0;
  for (std::int64_t c = 0; c < classes; ++c)
    sum += std::exp(logits[c] - top);
  return std::log(sum) - (logits[label] - top);
}

} // namespace

std::int64_t block_rows_of(const model& net) {
  constexpr std::int64_t bytes_max = std::int64_t{1} << 29U, rows_min = 16; // of all values and gradients of a block
  const auto row_bytes = std::max<std::int64_t>(net.working_set(1) - net.working_set(0), 1);
  const auto rows = std::clamp(bytes_max / row_bytes, rows_min, block_rows_max);
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(rows)));
}

extract_output run_pass(const extract_job& job, image_store& images) {
  const auto rows = job.samples.size(), classes = job.net->classes();
  const auto options = at::TensorOptions(at::kFloat).device(images.device());
  extract_output out{.features = at::empty({rows, job.net->feature_width()}, options),
                     .logits = classes > 0 ? at::empty({rows, classes}, options) : at::Tensor{},
                     .labels = at::empty({rows}, at::kLong)};
  for_each_block({*job.net, job.weights, job.samples, all_classes(*job.net)}, images, [&](const block& seen) {
    out.features.narrow(0, seen.first, seen.rows).copy_(seen.features);
    if (classes > 0)
      out.logits.narrow(0, seen.first, seen.rows).copy_(seen.logits);
  });
  for (std::int64_t i = 0; i < rows; ++i)
    out.labels.mutable_data_ptr<std::int64_t>()[i] = label_of(job.samples, i);
  out.labels = out.labels.to(images.device());
  return out;
}

statistics_output run_pass(const statistics_job& job, image_store& images) {
  const auto classes = job.classes > 0 ? job.classes : job.net->classes();
  MNEME_CHECK(classes > 0, job.net->identity());
  const auto projection = job.projection.defined() ? job.projection.to(images.device()) : at::Tensor{};
  const auto width = projection.defined() ? projection.size(1) : job.net->feature_width(); // M
  const auto options = at::TensorOptions(at::kDouble).device(images.device());
  statistics_output out{.gram = job.gram ? at::zeros({width, width}, options) : at::Tensor{},
                        .sums = at::zeros({classes, width}, options),
                        .counts = at::zeros({classes}, options)};
  constexpr std::int64_t gram_rows = 4 * block_rows_max; // M x M numbers are read and written once for so many rows
  auto gathered = at::empty({gram_rows, width}, options);
  std::int64_t waiting = 0; // rows of `gathered` not yet in the Gram matrix
  const auto add_gram = [&] {
    const auto h = gathered.narrow(0, 0, waiting);
    if (job.gram && waiting > 0)
      out.gram.addmm_(h.t(), h);
    waiting = 0;
  };
  for_each_block({*job.net, job.weights, job.samples, all_classes(*job.net)}, images, [&](const block& seen) {
    const auto shown = projection.defined() ? at::relu(at::mm(seen.features, projection)) : seen.features; // [b, M]
    auto h = gathered.narrow(0, waiting, seen.rows);
    h.copy_(shown);
    add_by_class(h, labels_of(job.samples, seen, classes), out);
    waiting += seen.rows;
    if (waiting == gram_rows)
      add_gram();
  });
  add_gram();
  return out;
}

evaluate_output run_pass(const evaluate_job& job, image_store& images) {
  evaluate_output out{.rows = job.samples.size()};
  const auto classes = job.mask.size();
  MNEME_CHECK(classes > 0, job.mask.low, job.mask.high);
  for_each_block({*job.what.net, job.what.weights, job.samples, job.mask}, images, [&](const block& seen) {
    if (!seen.logits.defined())
      throw std::invalid_argument("the net '" + job.what.net->identity() + "' has no head to evaluate");
    const auto logits = seen.logits.cpu().contiguous();
    for (std::int64_t i = 0; i < seen.rows; ++i) {
      const auto* const row = logits.const_data_ptr<float>() + i * classes;
      const auto label = label_of(job.samples, seen.first + i) - job.mask.low;
      if (label < 0 || label >= classes)
        continue;
      out.correct += std::max_element(row, row + classes) - row == label;
      out.loss_sum += loss_of(row, classes, label);
    }
  });
  return out;
}

} // namespace mneme
