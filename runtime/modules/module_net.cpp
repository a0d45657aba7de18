#include "runtime/modules/module_net.hpp"
#include "runtime/base/autograd_on.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/models/graph_gradients.hpp"
#include "runtime/modules/module_memory.hpp"
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <set>
namespace mneme {

// Axes: K models, B rows of a step, P weights, D features, C classes.

namespace {

/// A copy with LibTorch's default alignment. The bits of matrix products may depend on how a matrix is aligned to cache
/// lines.
at::Tensor own_copy(const at::Tensor& value, bool learn) {
  auto copy = value.detach().clone(at::MemoryFormat::Contiguous);
  return learn ? copy.requires_grad_(true) : copy;
}

/// Rows of a head's parameter for these classes; all rows if all classes share the parameter.
at::Tensor rows_of(const parameter& entry, const at::Tensor& weights, class_range classes) {
  const auto value = as_in_files(weights, entry);
  return entry.whole ? value : value.narrow(0, classes.low, classes.size());
}

/// Gradient of model k; undefined if `gradients` is undefined.
at::Tensor gradient_of(const at::Tensor& gradients, std::int64_t k) {
  return gradients.defined() ? gradients.select(0, k) : at::Tensor{};
}

/// The layer's name: everything up to and including the last dot of a parameter's name.
std::string layer_of(const std::string& name) { return name.substr(0, name.rfind('.') + 1); }

std::string free_head_name(const std::vector<parameter>& taken) {
  for (const std::string name : {"head", "run_head"})
    if (std::none_of(taken.begin(), taken.end(), [&](const auto& entry) { return entry.name.starts_with(name + "."); }))
      return name;
  return "run_head_of_mneme";
}

} // namespace

/// Leaves and results of the autograd graph of one model's pass.
struct module_net::model_pass {
  std::vector<at::Tensor> values{}, head{}; ///< Autograd leaves of module and head. Trained ones require gradients.
  at::Tensor features{};                    ///< [B, D]
  at::Tensor logits{};                      ///< [B, classes]
};

module_net::module_net(std::shared_ptr<const module_graph> graph, module_shape shape)
    : graph_(std::move(graph)), shape_(std::move(shape)) {
  for (const auto& held : graph_->tensors())
    if (in_layout(held))
      add_parameter({.name = held.name,
                     .shape = held.value.sizes().vec(),
                     .buffer = moves(held),
                     .frozen = !moves(held) && (!held.parameter || !trains(held)),
                     .held = held.parameter && !trains(held)});
  head_first_ = layout_.size();
  if (!shape_.scores && shape_.classes > 0)
    add_head();
  record_row_coupling();
}

void module_net::record_row_coupling() {
  couples_batch_rows_ =
      std::any_of(layout_.begin(), layout_.end(), [](const parameter& entry) { return entry.buffer && !entry.held; });
}

bool module_net::trains(const module_graph::held_tensor& held) const { return held.trains || !shape_.trained; }

/// Parameters and float32 buffers are part of the weights; other buffers, such as counters, are constants.
bool module_net::in_layout(const module_graph::held_tensor& held) const {
  return held.parameter || held.value.scalar_type() == at::kFloat;
}

/// True for float32 buffers that the file updates, if the module is trained in training mode.
bool module_net::moves(const module_graph::held_tensor& held) const {
  return shape_.training && held.moves && held.value.scalar_type() == at::kFloat;
}

/// Calls use(tensor, index, layout index) for each tensor that the module reads. The layout index is nullopt if the
/// tensor is not part of the weights.
template <class Use>
void module_net::for_each_tensor(const Use& use) const {
  std::size_t in_layout_so_far = 0, place = 0;
  for (const auto& held : graph_->tensors())
    use(held, place++, in_layout(held) ? std::optional(in_layout_so_far++) : std::nullopt);
}

void module_net::add_parameter(parameter entry) {
  entry.offset = size();
  entry.size = c10::multiply_integers(entry.shape);
  layout_.push_back(std::move(entry));
}

/// Adds a head that is initialized like the head of network_builder::add_head().
void module_net::add_head() {
  const auto name = free_head_name(layout_);
  const double bound = 1.0 / std::sqrt(static_cast<double>(shape_.width));
  add_parameter({.name = name + ".weight", .shape = {shape_.classes, shape_.width}, .head = true, .bound = bound});
  if (shape_.head == head_kind::cosine)
    add_parameter({.name = name + ".sigma", .shape = {1}, .head = true, .whole = true, .constant = 1.0});
  else
    add_parameter({.name = name + ".bias", .shape = {shape_.classes}, .head = true, .bound = bound});
}

std::string module_net::identity() const {
  const auto* const ending = shape_.scores || shape_.classes == 0 ? ""
                             : shape_.head == head_kind::cosine   ? " cosine"
                                                                  : " linear";
  return "module " + shape_.digest + " " + std::to_string(shape_.width) + "-" + std::to_string(shape_.classes) + ending;
}

std::int64_t module_net::working_set(std::int64_t rows) const {
  const auto [channels, height, width] = shape_.input;
  const auto floats = channels * height * width + shape_.width + shape_.classes;
  const auto float_bytes = static_cast<std::int64_t>(sizeof(float));
  return size() * float_bytes + rows * (shape_.row_bytes + floats * float_bytes);
}

std::shared_ptr<const model> module_net::with_frozen(const std::vector<bool>& chosen) const {
  auto copy = std::make_shared<module_net>(*this);
  hold_parameters(copy->layout_, chosen);
  copy->record_row_coupling();
  return copy;
}

void module_net::put_own_values(at::Tensor& flat) const {
  for_each_tensor([&](const auto& held, std::size_t, std::optional<std::size_t> entry) {
    if (entry)
      put_as_in_files(flat, layout_[*entry], held.value.to(flat.device()));
  });
}

std::vector<std::string> module_net::warnings() const {
  std::vector<std::string> texts;
  if (const auto layer = graph_->untrained_layer(); shape_.trained && !layer.empty())
    texts.push_back(
        fmt::format("the module was exported in evaluation mode, and it is trained in this mode: dropout drops "
                    "nothing and batch norms keep the running statistics of the file, as in {}; expected an "
                    "export after net.train() where that matters",
                    layer));
  if (!shape_.unfused.empty())
    texts.push_back(shape_.unfused);
  return texts;
}

// -- training mode ----------------------------------------------------------------------------------------------------

bool module_net::trains_module(const parameter_choice& trained) const {
  bool trains_any = trained.whole() || trained.updates_running_stats();
  for (std::size_t i = 0; i < head_first_ && !trains_any; ++i)
    trains_any = trained.changes(*this, i);
  return trains_any;
}

/// Marks buffers that are not updated: frozen ones, and those of layers without a trained parameter.
std::vector<bool> module_net::still_tensors(const parameter_choice& trained) const {
  std::set<std::string> trained_layers;
  for (std::size_t i = 0; i < head_first_; ++i)
    if (trained.changes(*this, i))
      trained_layers.insert(layer_of(layout_[i].name));
  std::vector<bool> still(graph_->tensors().size());
  for_each_tensor([&](const auto& held, std::size_t place, std::optional<std::size_t> entry) {
    const bool moves_with_layer =
        trained.whole() || trained.updates_running_stats() || trained_layers.contains(layer_of(held.name));
    still[place] = held.moves && (!entry || layout_[*entry].held || !moves_with_layer);
  });
  return still;
}

/// Options of a pass. The caller adds each model's random key and the statistics.
module_mode module_net::mode_of(const training_mode* training) const {
  const parameter_choice everything;
  const auto& trained = training && training->trained ? *training->trained : everything;
  if (!shape_.training || !training || !trains_module(trained))
    return {};
  return {.training = true, .still = still_tensors(trained), .running_stats_updates = training->running_stats_updates};
}

/// Random key of the dropout masks of model k.
rng_key module_net::stream_of(const training_mode* training, std::int64_t k) const {
  return uses_random_numbers() && training && !training->streams.empty()
             ? training->streams[static_cast<std::size_t>(k)]
             : rng_key{};
}

/// Copies the buffers that a pass has updated into the model's weights, [P].
void module_net::put_moved(const at::Tensor& weights, std::span<const at::Tensor> values,
                           const module_mode& mode) const {
  if (!mode.training)
    return;
  const at::NoGradGuard written;
  auto flat = weights;
  for_each_tensor([&](const auto&, std::size_t place, std::optional<std::size_t> entry) {
    if (entry && layout_[*entry].buffer && !mode.still[place])
      put_as_in_files(flat, layout_[*entry], values[place].detach());
  });
}

// -- forward ----------------------------------------------------------------------------------------------------------

/// Values for the graph's tensors, in graph order. @param learn makes trained parameters autograd leaves
std::vector<at::Tensor> module_net::module_values(const at::Tensor& weights, bool learn) const {
  std::vector<at::Tensor> values;
  for_each_tensor([&](const auto& held, std::size_t, std::optional<std::size_t> place) {
    if (!place) {
      values.push_back(held.value.clone()); // copied, because threads share the tensor and the graph may write to it
      return;
    }
    const auto& entry = layout_[*place];
    values.push_back(own_copy(as_in_files(weights, entry), learn && !entry.frozen && !entry.buffer));
  });
  return values;
}

std::vector<at::Tensor> module_net::head_values(const at::Tensor& weights, class_range classes, bool learn) const {
  std::vector<at::Tensor> values;
  for (auto i = head_first_; i < layout_.size() && classes.size() > 0; ++i)
    values.push_back(own_copy(rows_of(layout_[i], weights, classes), learn));
  return values;
}

std::int64_t module_net::pass_bytes_max(std::int64_t rows) const {
  return module_memory::limit_of_pass(working_set(rows), rows, shape_.row_bytes);
}

std::runtime_error module_net::failure(const std::string& step, const std::string& reason) const {
  return std::runtime_error(fmt::format("module '{}': {}: {}", shape_.file, step, reason));
}

/// Calls act(). Rethrows any failure with the file's name. @param step such as "forward failed on rows 0 to 15 of 37"
template <class Act>
void module_net::attempt(const std::string& step, const module_memory& memory, const Act& act) const {
  std::string reason;
  if (auto unallocated = exception_message_of([&] { reason = torch_error_of(act); }); !unallocated.empty())
    reason = std::move(unallocated);
  if (!reason.empty())
    throw failure(step, memory.error_of_pass(std::move(reason)));
}

/// Throws if the result is not [rows, D] float32 on the device of the rows.
void module_net::check_result(const at::Tensor& result, const at::Tensor& rows, const std::string& place) const {
  const std::array<std::int64_t, 2> expected{rows.size(0), shape_.width};
  if (result.sizes() != at::IntArrayRef(expected) || result.scalar_type() != at::kFloat ||
      result.device() != rows.device())
    throw failure(
        "forward returned another form on " + place,
        fmt::format("{} [{}] on {}; expected Float [{}] on {}, as in its trial: the form of a result must not "
                    "depend on the values of the rows",
                    c10::toString(result.scalar_type()), fmt::join(result.sizes(), ", "), result.device().str(),
                    fmt::join(expected, ", "), rows.device().str()));
}

/// [B, C, H, W] -> [B, D]. Evaluation computes rows_at_once rows per call. Training mode and collected statistics need
/// all rows in one call. The last call of a training step may have fewer rows. In all other passes, the last call is
/// padded with zeros. All calls then have one shape, and the bits of a row's result do not depend on the number of
/// rows.
at::Tensor module_net::features_of(const at::Tensor& rows, std::span<const at::Tensor> values, bool of_step,
                                   const module_mode& mode) const {
  std::vector<at::Tensor> parts;
  const bool as_one = mode.training || mode.statistics;
  const auto count = rows.size(0), at_once = as_one ? std::max<std::int64_t>(count, 1) : shape_.rows_at_once;
  const auto result_bytes = 2 * count * shape_.width * static_cast<std::int64_t>(sizeof(float));
  const module_memory memory(pass_bytes_max(of_step ? count : at_once) + result_bytes);
  for (std::int64_t first = 0; first < count; first += at_once) {
    const auto taken = std::min(at_once, count - first);
    auto shown = in_form(rows.narrow(0, first, taken).clone(), shape_.form); // copied, because the graph may write to
                                                                             // it
    if (!of_step && taken < at_once)
      shown = pad_to(shown, at_once);
    const auto place = fmt::format("rows {} to {} of {}", first, first + taken - 1, count);
    at::Tensor result;
    attempt("forward failed on " + place, memory, [&] { result = graph_->run(shown, values, mode); });
    check_result(result, shown, place);
    parts.push_back(result.narrow(0, 0, taken));
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts);
}

/// features [B, D] -> [B, classes]
at::Tensor module_net::logits_of(const at::Tensor& features, const std::vector<at::Tensor>& head,
                                 class_range classes) const {
  if (shape_.scores)
    return features.narrow(1, classes.low, classes.size());
  if (shape_.head == head_kind::linear)
    return at::linear(features, head[0], head[1]);
  const auto unit = [](const at::Tensor& x) {
    return x / at::linalg_vector_norm(x, 2, at::IntArrayRef{1}, true).clamp_min(1e-12);
  };
  return at::linear(unit(features), unit(head[0])) * head[1];
}

activations module_net::forward(const at::Tensor& weights, const at::Tensor& inputs, class_range classes, tape* keep,
                                const training_mode* training) const {
  MNEME_CHECK(0 <= classes.low && classes.high <= shape_.classes, identity(), classes.low, classes.high);
  MNEME_CHECK(weights.size(1) == size(), identity(), weights.sizes());
  const bool learn = keep && keep->for_backward, module_learns = learn && training;
  const auto [channels, height, width] = shape_.input;
  const auto models = inputs.size(0), rows = inputs.size(1);
  const auto images = inputs.view({models, rows, channels, height, width});
  std::vector<at::Tensor> features, logits; // [K]
  if (keep)
    keep->values.clear();
  const autograd_on tracking;
  auto mode = mode_of(training);
  for (std::int64_t k = 0; k < models; ++k) {
    const auto own = weights.select(0, weights.size(0) == 1 ? 0 : k); // [P]
    model_pass one_pass{.values = module_values(own, module_learns), .head = head_values(own, classes, learn)};
    mode.stream = stream_of(training, k);
    {
      const at::AutoGradMode followed(module_learns);
      one_pass.features = features_of(images.select(0, k), one_pass.values, learn, mode);
    }
    put_moved(own, one_pass.values, mode);
    const at::AutoGradMode followed(learn);
    if (classes.size() > 0)
      one_pass.logits = logits_of(one_pass.features, one_pass.head, classes);
    features.push_back(one_pass.features.detach());
    if (one_pass.logits.defined())
      logits.push_back(one_pass.logits.detach());
    if (learn)
      put_on(*keep, std::move(one_pass));
  }
  return {.features = at::stack(features), .logits = logits.empty() ? at::Tensor{} : at::stack(logits)};
}

// -- as a function ----------------------------------------------------------------------------------------------------

/// Batch statistics by channel, with the running statistics from the weights [P].
batch_statistics module_net::statistics_of(const module_statistics& found, const at::Tensor& weights) const {
  batch_statistics made{.mean = found.batch_mean,
                        .variance = found.batch_variance,
                        .values = found.values,
                        .moves = found.moves,
                        .momentum = found.momentum};
  for_each_tensor([&](const auto& held, std::size_t place, std::optional<std::size_t> entry) {
    if (!entry || (place != found.mean && place != found.variance))
      return;
    const auto& at_place = layout_[*entry];
    (place == found.mean ? made.mean_offset : made.variance_offset) = at_place.offset;
    (place == found.mean ? made.running_mean : made.running_variance) = as_in_files(weights, at_place);
    if (place == found.mean)
      made.name = held.name.substr(0, held.name.rfind('.'));
  });
  return made;
}

function_results module_net::differentiable(const at::Tensor& weights, const at::Tensor& inputs, class_range classes,
                                            const function_mode& wanted) const {
  const auto [channels, height, width] = shape_.input;
  const auto images = inputs.view({inputs.size(0), inputs.size(1), channels, height, width});
  std::vector<at::Tensor> features, logits;              // [K]
  std::vector<std::vector<batch_statistics>> statistics; // [K]
  auto mode = mode_of(wanted.training);
  for (std::int64_t k = 0; k < inputs.size(0); ++k) {
    const auto own = weights.select(0, weights.size(0) == 1 ? 0 : k); // [P]
    std::vector<at::Tensor> values, head;
    for_each_tensor([&](const auto& held, std::size_t, std::optional<std::size_t> entry) {
      values.push_back(entry ? as_in_files(own, layout_[*entry]).clone() : held.value.clone());
    });
    for (auto i = head_first_; i < layout_.size() && classes.size() > 0; ++i)
      head.push_back(rows_of(layout_[i], own, classes).clone());
    std::vector<module_statistics> found;
    mode.stream = stream_of(wanted.training, k);
    mode.statistics = wanted.statistics || mode.training ? &found : nullptr;
    features.push_back(features_of(images.select(0, k), values, true, mode));
    if (classes.size() > 0)
      logits.push_back(logits_of(features.back(), head, classes));
    if (!wanted.statistics)
      continue;
    auto& of_model = statistics.emplace_back();
    for (const auto& each : found)
      of_model.push_back(statistics_of(each, own));
  }
  function_results results{.features = at::stack(features),
                           .logits = logits.empty() ? at::Tensor{} : at::stack(logits)};
  if (wanted.statistics)
    add_statistics(results.statistics, statistics);
  return results;
}

// -- backward ---------------------------------------------------------------------------------------------------------

/// Pushes a model's leaves and results onto the tape.
void module_net::put_on(tape& keep, model_pass pass) const {
  auto& values = keep.values;
  values.insert(values.end(), pass.values.begin(), pass.values.end());
  values.insert(values.end(), pass.head.begin(), pass.head.end());
  values.push_back(std::move(pass.features));
  values.push_back(std::move(pass.logits));
}

/// Pops the first model from the tape. @param models number of models on the tape
module_net::model_pass module_net::taken_from(tape& keep, std::size_t models) const {
  auto& values = keep.values;
  const auto own = static_cast<std::ptrdiff_t>(values.size() / models), held = std::ssize(graph_->tensors());
  const auto first = values.begin();
  model_pass learned{.values = {first, first + held}, .head = {first + held, first + own - 2}};
  learned.features = first[own - 2];
  learned.logits = first[own - 1];
  values.erase(first, first + own);
  return learned;
}

void module_net::backward(const at::Tensor& /*weights*/, tape& kept, class_range classes, const at::Tensor& d_logits,
                          const at::Tensor& d_features, const parameter_choice& trained,
                          const gradient_sink& out) const {
  const auto models = out.into.size(0);
  MNEME_CHECK(kept.for_backward && !kept.values.empty(), identity());
  for (std::int64_t k = 0; k < models; ++k)
    backward_model(taken_from(kept, static_cast<std::size_t>(models - k)), classes, gradient_of(d_logits, k),
                   gradient_of(d_features, k), trained, out.into.select(0, k), out);
}

/// Backward pass of one model. @param into [P], the model's row of the gradient sink
void module_net::backward_model(const model_pass& passed, class_range classes, const at::Tensor& d_logits,
                                const at::Tensor& d_features, const parameter_choice& trained, at::Tensor into,
                                const gradient_sink& out) const {
  std::vector<graph_parameter> parameters;
  for_each_tensor([&](const auto&, std::size_t place, std::optional<std::size_t> entry) {
    if (entry && !layout_[*entry].frozen && !layout_[*entry].buffer && trained.changes(*this, *entry))
      parameters.push_back({.value = passed.values[place], .place = as_in_files(into, layout_[*entry])});
  });
  for (std::size_t j = 0; j < passed.head.size(); ++j)
    if (trained.changes(*this, head_first_ + j))
      parameters.push_back({.value = passed.head[j], .place = rows_of(layout_[head_first_ + j], into, classes)});
  const auto rows = passed.features.size(0);
  const module_memory memory(pass_bytes_max(rows));
  attempt(fmt::format("its gradient failed on {} rows", rows), memory, [&] {
    graph_gradients(
        parameters,
        {{.value = passed.logits, .gradient = d_logits}, {.value = passed.features, .gradient = d_features}}, out);
  });
}

} // namespace mneme
