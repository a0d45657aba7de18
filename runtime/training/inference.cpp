#include "runtime/training/inference.hpp"
#include "runtime/base/ceil_div.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/triangle.hpp"
#include "runtime/base/tuning.hpp"
#include "runtime/models/row_wise_model.hpp"
#include <ATen/ATen.h>
#include <bit>
#include <cmath>
#include <functional>
#include <optional>
namespace mneme {
namespace {

// Axes: n rows of a job, b rows of a block, D features, C classes, M projected width.

/// Outputs for a block of rows.
struct block {
  std::int64_t first = 0, rows = 0; ///< Range within the job.
  at::Tensor features{};            ///< [b, D]
  at::Tensor logits{};              ///< [b, classes], or undefined
};

/// Arguments of a pass over a job's rows.
struct inference_pass {
  const model& net;
  const tensors_ref& weights;
  const sample_view& samples;
  class_range classes{}; ///< Classes of the logits; empty: features only.
  bool frozen = false;
  augmentation_kind augment = augmentation_kind::none;
  rng_key stream{};                 ///< Key from which the keys of the augmentation are derived.
  slice_monitor* monitor = nullptr; ///< May stop the pass between two blocks; null: it is not stopped.
};

/// Row numbers of a data set.
using row_span = std::span<const std::int64_t>;

/// Calls `use` with each block of `block_rows` rows, in order. The block is valid during the call only.
void run_blocks(const inference_pass& pass, row_span rows, std::int64_t block_rows, image_store& images,
                const std::function<void(const block&)>& use) {
  const auto device = images.device();
  const auto weights = pass.weights->at(flat_weights).to(device).unsqueeze(0); // [1, P]
  const auto [channels, height, width] = pass.samples.source->shape();
  tape kept; // all blocks use its memory
  kept.for_backward = false;
  for (std::int64_t first = 0; first < std::ssize(rows); first += block_rows) {
    if (pass.monitor && pass.monitor->should_stop())
      throw std::runtime_error(interrupted_text);
    const auto count = std::min(block_rows, std::ssize(rows) - first);
    auto inputs = at::empty({count, channels, height, width}, at::TensorOptions(at::kFloat).device(device));
    std::vector<augmentation> augment;
    for (auto i = first; pass.augment != augmentation_kind::none && i < first + count; ++i)
      augment.push_back(draw_augmentation(pass.augment, pass.stream, /*epoch=*/0, i));
    images.gather_into(inputs, pass.samples.source,
                       rows.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)), augment);
    const auto outputs = pass.net.forward(weights, inputs.unsqueeze(0), pass.classes, &kept);
    use({.first = first,
         .rows = count,
         .features = outputs.features[0],
         .logits = outputs.logits.defined() ? outputs.logits[0] : at::Tensor{}});
  }
}

/// Computes and caches the missing features of a frozen net, then calls `use` with the features of all rows. The number
/// of missing rows depends on earlier jobs, so a row's bits must not depend on that number. On a CPU, a net whose bits
/// depend on the number of rows computes the rows one by one. On a device every block is full: kernels are chosen by
/// shape, and within one shape a row's sums do not depend on its position.
void show_remembered(const inference_pass& pass, image_store& images, feature_store& store,
                     const std::function<void(const block&)>& use) {
  const row_span rows(*pass.samples.rows);
  auto& table = store.of(pass.samples.source, pass.net, pass.weights);
  auto missing = table.missing(rows);
  const auto missing_rows = std::ssize(missing);
  const bool one_by_one = images.device().is_cpu() && pass.net.depends_on_row_count(pass.classes);
  const auto block_rows = one_by_one ? 1 : block_rows_of(pass.net);
  if (!images.device().is_cpu() && missing_rows > 0) // padding of the last block is computed but not cached
    missing.resize(static_cast<std::size_t>(ceil_div<std::int64_t>(missing_rows, block_rows) * block_rows),
                   missing.back());
  run_blocks(pass, missing, block_rows, images, [&](const block& outputs) {
    const auto count = std::min(outputs.rows, missing_rows - outputs.first);
    table.put(row_span(missing).subspan(static_cast<std::size_t>(outputs.first), static_cast<std::size_t>(count)),
              outputs.features.narrow(0, 0, count));
  });
  for (std::int64_t first = 0; first < std::ssize(rows); first += tuning::block_rows_max) {
    const auto count = std::min(tuning::block_rows_max, std::ssize(rows) - first);
    auto features = at::empty({count, pass.net.feature_width()}, at::kFloat);
    table.copy_to(features, rows.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
    use({.first = first, .rows = count, .features = features.to(images.device())});
  }
}

/// Calls `use` with each block of the job's rows, in order. The block is valid during the call only.
void for_each_block(const inference_pass& pass, image_store& images, feature_store* store,
                    const std::function<void(const block&)>& use) {
  if (pass.samples.size() == 0)
    return;
  const bool lasts = !pass.samples.source || !pass.samples.source->is_temporary;
  const bool remembered = store && lasts && pass.frozen && pass.classes.size() == 0 && pass.net.size() > 0;
  if (remembered)
    show_remembered(pass, images, *store, use);
  else
    run_blocks(pass, *pass.samples.rows, block_rows_of(pass.net), images, use);
}

std::int64_t label_of(const sample_view& samples, std::int64_t i) {
  return samples.source->label((*samples.rows)[static_cast<std::size_t>(i)]);
}

/// Labels of the block relative to `within.low`, [b] int64. Throws std::invalid_argument for a label outside `within`.
at::Tensor labels_of(const sample_view& samples, const block& outputs, class_range within) {
  auto labels = at::empty({outputs.rows}, at::kLong);
  for (std::int64_t i = 0; i < outputs.rows; ++i) {
    const auto label = label_of(samples, outputs.first + i);
    if (label < within.low || label >= within.high)
      throw std::invalid_argument("row " + std::to_string(outputs.first + i) + " of the job has label " +
                                  std::to_string(label) + ", but the job is about labels " +
                                  std::to_string(within.low) + " to " + std::to_string(within.high - 1));
    labels.mutable_data_ptr<std::int64_t>()[i] = label - within.low;
  }
  return labels;
}

/// Adds each row of h [b, M] to `sums` [G, M] and counts it in `counts` [G], for its group.
void add_by_group(const at::Tensor& h, const at::Tensor& groups, at::Tensor& sums, at::Tensor& counts) {
  const auto one_hot = at::one_hot(groups, sums.size(0)).to(sums.options()); // [b, G]
  counts.add_(one_hot.sum(0));
  if (h.is_cpu())
    sums.index_add_(0, groups, h); // sums in row order
  else
    sums.addmm_(one_hot.t(), h); // on devices index_add_ uses atomics, whose order of summation varies
}

/// phi of features x [b, D]: x, or ReLU(x W) with `projection` W. In float64, results do not depend on block sizes.
at::Tensor projected(const at::Tensor& features, const at::Tensor& projection) {
  auto wide = features.to(at::kDouble);
  return projection.defined() ? at::mm(wide, projection).relu_() : wide;
}

/// Softmax cross-entropy of one row, in float64.
double loss_of(const float* logits, std::int64_t classes, std::int64_t label) {
  const double top = *std::max_element(logits, logits + classes);
  double sum = 0.0;
  for (std::int64_t c = 0; c < classes; ++c)
    sum += std::exp(logits[c] - top);
  return std::log(sum) - (logits[label] - top);
}

/// Scores of a linear or cosine readout, [b, classes of the mask] float32.
class readout_scores {
public:
  readout_scores(const predictor& learned, class_range mask, const at::Device& device)
      : cosine_(learned.kind == readout_kind::cosine) {
    if (learned.projection.defined())
      projection_ = learned.projection.to(device);
    weights_ = learned.readout.narrow(0, mask.low, mask.size()).to(device).to(at::kDouble);
    if (cosine_)
      weights_ = unit(weights_);
  }
  [[nodiscard]] at::Tensor of(const at::Tensor& features) const {
    auto phi = projected(features, projection_);
    return at::mm(cosine_ ? unit(phi) : phi, weights_.t()).to(at::kFloat);
  }

private:
  /// Scales rows to unit length. A class without data has a zero row, which stays zero, so its cosine is 0.
  static at::Tensor unit(const at::Tensor& rows) {
    return rows / at::linalg_vector_norm(rows, 2, at::IntArrayRef{1}, true).clamp_min(1e-300);
  }
  bool cosine_;
  at::Tensor projection_{}, weights_{}; // [D, M], [classes, M] float64
};

/// Scores of a classifier net that reads features, [b, classes of the mask] float32.
class downstream_scores {
public:
  downstream_scores(const predictor& learned, class_range mask, const at::Device& device)
      : behind_(*learned.classifier), mask_(mask), device_(device) {
    const auto& whole = learned.weights->at(flat_weights);
    const auto size = behind_.net->size();
    weights_ = whole.narrow(0, whole.numel() - size, size).to(device).unsqueeze(0); // [1, P]
    kept_.for_backward = false;
  }
  /// @param rows indices of the block's rows in the data set, used as keys of the samples
  [[nodiscard]] at::Tensor of(const at::Tensor& features, row_span rows) {
    const auto inputs = behind_.sampled ? sampled(features.cpu(), rows).to(device_) : means(features); // [b, reads]
    return behind_.net->forward(weights_, inputs.unsqueeze(0), mask_, &kept_).logits[0];
  }

private:
  [[nodiscard]] at::Tensor means(const at::Tensor& features) const {
    return features.narrow(1, 0, behind_.reads).contiguous();
  }
  /// mu + exp(l) e, with l clamped to its bounds.
  [[nodiscard]] at::Tensor sampled(const at::Tensor& features, row_span rows) const {
    auto centers = means(features);
    const auto deviations =
        features.narrow(1, behind_.reads, behind_.reads).clamp(behind_.sampled->low, behind_.sampled->high).exp();
    auto* value = centers.mutable_data_ptr<float>();
    const auto* deviation = deviations.const_data_ptr<float>();
    for (const auto row : rows) {
      auto key = behind_.sampled->stream;
      key.index = static_cast<std::uint64_t>(row);
      rng_stream draw(key);
      for (std::int64_t d = 0; d < behind_.reads; ++d)
        *value++ += *deviation++ * static_cast<float>(draw.normal());
    }
    return centers;
  }

  const classifier_stage& behind_;
  class_range mask_;
  at::Device device_;
  at::Tensor weights_{};
  tape kept_;
};

} // namespace

std::int64_t block_rows_of(const model& net) {
  const auto row_bytes = std::max<std::int64_t>(net.working_set(1) - net.working_set(0), 1);
  const auto rows = std::clamp(tuning::block_bytes_max / row_bytes, tuning::block_rows_min, tuning::block_rows_max);
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(rows)));
}

extract_output run_inference(const extract_job& job, image_store& images, feature_store* store,
                             slice_monitor* monitor) {
  if (job.logits && positions_of(*job.net) > 1)
    throw std::invalid_argument("the net '" + job.net->identity() +
                                "' predicts the next token of each position, so rows have no class scores to extract");
  const auto rows = job.samples.size(), classes = job.logits ? job.net->classes() : 0;
  const auto options = at::TensorOptions(at::kFloat).device(images.device());
  extract_output out{.features = at::empty({rows, job.net->feature_width()}, options),
                     .logits = classes > 0 ? at::empty({rows, classes}, options) : at::Tensor{},
                     .labels = at::empty({rows}, at::kLong)};
  const inference_pass pass{.net = *job.net,
                            .weights = job.weights,
                            .samples = job.samples,
                            .classes = {0, classes},
                            .frozen = job.frozen,
                            .augment = job.augment,
                            .stream = job.stream,
                            .monitor = monitor};
  for_each_block(pass, images, store, [&](const block& outputs) {
    out.features.narrow(0, outputs.first, outputs.rows).copy_(outputs.features);
    if (classes > 0)
      out.logits.narrow(0, outputs.first, outputs.rows).copy_(outputs.logits);
  });
  for (std::int64_t i = 0; i < rows; ++i)
    out.labels.mutable_data_ptr<std::int64_t>()[i] = label_of(job.samples, i);
  out.labels = out.labels.to(images.device());
  return out;
}

statistics_output run_inference(const statistics_job& job, image_store& images, feature_store* store,
                                slice_monitor* monitor) {
  const auto classes = job.classes.size();
  MNEME_CHECK(classes > 0 && job.parts > 0, job.net->identity(), classes, job.parts);
  MNEME_CHECK(!job.part_of || std::ssize(*job.part_of) == job.samples.size(), job.samples.size());
  const auto projection = job.projection.defined() ? job.projection.to(images.device()) : at::Tensor{};
  const auto width = projection.defined() ? projection.size(1) : job.net->feature_width(); // M
  const auto options = at::TensorOptions(at::kDouble).device(images.device());
  statistics_output out{.gram = job.gram ? at::zeros({triangle_size(width)}, options) : at::Tensor{},
                        .sums = at::zeros({job.parts * classes, width}, options),
                        .counts = at::zeros({job.parts * classes}, options)};
  // Number of rows after which the Gram matrix (M x M numbers) is read and written once.
  constexpr std::int64_t gram_rows = 4 * tuning::block_rows_max;
  auto gathered = at::empty({gram_rows, width}, options);
  std::int64_t waiting = 0; // number of rows of `gathered` that have not been added to the Gram matrix
  const auto add_waiting = [&] {
    if (job.gram && waiting > 0)
      add_gram(out.gram, gathered.narrow(0, 0, waiting));
    waiting = 0;
  };
  const inference_pass pass{
      .net = *job.net, .weights = job.weights, .samples = job.samples, .frozen = job.frozen, .monitor = monitor};
  for_each_block(pass, images, store, [&](const block& outputs) {
    if (waiting + outputs.rows > gram_rows)
      add_waiting();
    auto h = gathered.narrow(0, waiting, outputs.rows);
    h.copy_(projected(outputs.features, projection));
    auto groups = labels_of(job.samples, outputs, job.classes);
    for (std::int64_t i = 0; job.part_of && i < outputs.rows; ++i)
      groups.mutable_data_ptr<std::int64_t>()[i] +=
          (*job.part_of)[static_cast<std::size_t>(outputs.first + i)] * classes;
    add_by_group(h, groups.to(images.device()), out.sums, out.counts);
    waiting += outputs.rows;
  });
  add_waiting();
  out.sums = out.sums.view({job.parts, classes, width});
  out.counts = out.counts.view({job.parts, classes});
  return out;
}

namespace {

/// Adds the block's rows to `out`. @param scores [b, classes of the mask]
void evaluate(evaluate_output& out, const evaluate_job& job, const block& outputs, const at::Tensor& scores) {
  const auto logits = scores.cpu().contiguous();
  const auto classes = job.mask.size();
  for (std::int64_t i = 0; i < outputs.rows; ++i) {
    const auto* const row = logits.const_data_ptr<float>() + i * classes;
    const auto label = label_of(job.samples, outputs.first + i) - job.mask.low;
    const auto answer = std::max_element(row, row + classes) - row;
    if (job.lists_answers)
      out.answers.push_back(static_cast<std::int32_t>(job.mask.low + answer));
    if (label < 0 || label >= classes)
      continue;
    out.correct += answer == label;
    out.loss_sum += loss_of(row, classes, label);
  }
}

/// Adds the predictions of the second and later tokens of the block's rows to `out`. @param scores [b T, classes]
void evaluate_tokens(evaluate_output& out, const evaluate_job& job, const block& outputs, const at::Tensor& scores) {
  const auto logits = scores.cpu().contiguous();
  const auto classes = logits.size(1), tokens = logits.size(0) / outputs.rows;
  const auto& source = *job.samples.source;
  const auto* row = logits.const_data_ptr<float>();
  for (std::int64_t i = 0; i < outputs.rows; ++i) {
    const auto at = source.in_file((*job.samples.rows)[static_cast<std::size_t>(outputs.first + i)]);
    const auto* const text = source.vectors.const_data_ptr<float>() + at * tokens;
    for (std::int64_t t = 0; t < tokens; ++t, row += classes) {
      if (t + 1 == tokens) // the row's last token has no next token to predict
        continue;
      const auto label = static_cast<std::int64_t>(text[t + 1]);
      out.correct += std::max_element(row, row + classes) - row == label;
      out.loss_sum += loss_of(row, classes, label);
    }
  }
  out.rows += outputs.rows * (tokens - 1);
}

} // namespace

evaluate_output run_inference(const evaluate_job& job, image_store& images, feature_store* store,
                              slice_monitor* monitor) {
  evaluate_output out{.rows = job.samples.size()};
  const auto& learned = job.learned;
  MNEME_CHECK(job.mask.size() > 0, job.mask.low, job.mask.high);
  const auto look = [&](const model& net, const tensors_ref& weights, class_range shown, bool frozen,
                        const auto& scores_of) {
    const inference_pass pass{
        .net = net, .weights = weights, .samples = job.samples, .classes = shown, .frozen = frozen, .monitor = monitor};
    for_each_block(pass, images, store, [&](const block& outputs) { evaluate(out, job, outputs, scores_of(outputs)); });
  };
  if (learned.classifier) {
    downstream_scores scores(learned, job.mask, images.device());
    look(*learned.classifier->front_net, learned.classifier->front, {}, true, [&](const block& outputs) {
      const row_span rows(*job.samples.rows);
      return scores.of(outputs.features,
                       rows.subspan(static_cast<std::size_t>(outputs.first), static_cast<std::size_t>(outputs.rows)));
    });
  } else if (learned.kind != readout_kind::head) {
    const readout_scores scores(learned, job.mask, images.device());
    look(*learned.net, learned.weights, {}, learned.frozen,
         [&](const block& outputs) { return scores.of(outputs.features); });
  } else if (learned.net->classes() == 0) {
    throw std::invalid_argument("the net '" + learned.net->identity() + "' has no head to evaluate");
  } else if (positions_of(*learned.net) > 1) {
    out.rows = 0; // counts tokens
    const inference_pass pass{.net = *learned.net,
                              .weights = learned.weights,
                              .samples = job.samples,
                              .classes = {0, learned.net->classes()},
                              .frozen = learned.frozen,
                              .monitor = monitor};
    for_each_block(pass, images, store,
                   [&](const block& outputs) { evaluate_tokens(out, job, outputs, outputs.logits); });
  } else {
    look(*learned.net, learned.weights, job.mask, learned.frozen, [](const block& outputs) { return outputs.logits; });
  }
  return out;
}

/// Copies the job's inputs to the device and runs it.
compute_output run_compute(const compute_job& job, const at::Device& device) {
  MNEME_CHECK(job.run && job.in, job.name);
  tensor_map there;
  for (const auto& [name, value] : *job.in)
    there.put(name, value.to(device));
  return {std::make_shared<const tensor_map>(job.run(there))};
}

} // namespace mneme
