// The operators of a file as one layer of a net.
#include "runtime/base/autograd_on.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/models/function_layer.hpp"
#include "runtime/models/graph_gradients.hpp"
#include "runtime/modules/graph_segments.hpp"
#include "runtime/modules/module_memory.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <algorithm>
#include <c10/util/accumulate.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>
namespace mneme {
namespace {

// Axes: K models, B rows.

using shape = graph_view::shape;

/// Data that all copies of a segment's layer share.
struct segment_parts {
  exported_program program{};
  graph_segment segment{};
  segment_layer_options options{};
  shape row_sizes{}, in{}, out{}; ///< Sizes for one row: the net's row, the segment's input and its output.
  /// [parameters, then running statistics that training updates] Indices of tensors of the program.
  std::vector<std::size_t> sources{};
  std::size_t parameters = 0;  ///< Number of parameters in `sources`.
  std::int64_t weights = 0;    ///< Number of values of all tensors in `sources`.
  std::int64_t kept_bytes = 0; ///< Bytes of the results of all operators, for one row.
};

/// The pass of one model through a segment: leaves and result of an autograd graph of its own.
struct segment_pass {
  std::vector<at::Tensor> leaves{}; ///< The input, then `sources`.
  at::Tensor result{};
};

/// Gradient of one model's pass, within the limit of memory.
class segment_gradient final : public torch::autograd::Node {
public:
  /// @param rows number of rows of the pass @param bytes_max limit in bytes
  segment_gradient(std::shared_ptr<const segment_parts> parts, segment_pass pass, std::int64_t rows,
                   std::int64_t bytes_max)
      : parts_(std::move(parts)), pass_(std::move(pass)), rows_(rows), bytes_max_(bytes_max) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& d) override {
    std::vector<std::size_t> places;
    std::vector<at::Tensor> wanted;
    for (std::size_t i = 0; i < pass_.leaves.size(); ++i)
      if (pass_.leaves[i].requires_grad() && task_should_compute_output(i))
        places.push_back(i), wanted.push_back(pass_.leaves[i]);
    torch::autograd::variable_list all(pass_.leaves.size());
    const module_memory memory(bytes_max_);
    std::vector<at::Tensor> gradients;
    auto error = exception_message_of([&] {
      gradients = gradients_by(wanted, {{.value = pass_.result, .gradient = d[0]}},
                               torch::autograd::get_current_graph_task_keep_graph());
    });
    if (!error.empty())
      throw std::runtime_error(fmt::format("module '{}': its gradient failed on {} rows: {}", parts_->options.file,
                                           rows_, memory.error_of_pass(std::move(error))));
    for (std::size_t j = 0; j < places.size(); ++j)
      all[places[j]] = gradients[j];
    return all;
  }
  void release_variables() override { pass_ = {}; }

private:
  std::shared_ptr<const segment_parts> parts_;
  segment_pass pass_;
  std::int64_t rows_, bytes_max_;
};

class segment_layer final : public function_layer {
public:
  segment_layer(std::shared_ptr<const segment_parts> parts, foreign_layer::place place)
      : parts_(std::move(parts)), place_(std::move(place)) {}

  [[nodiscard]] std::int64_t width(class_range) const override { return c10::multiply_integers(parts_->out); }
  [[nodiscard]] bool depends_on_row_count() const override { return true; }
  [[nodiscard]] std::int64_t kept_bytes_per_row() const override { return parts_->kept_bytes; }

  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override {
    const bool follows = at::GradMode::is_enabled();
    const autograd_on tracking;
    const at::AutoGradMode followed(follows);
    // unbind() gives all models in one call, because the gradient of each selection would have the size of all models.
    std::vector<std::vector<at::Tensor>> sources{in.unbind(0)}; // [input, then parts_->sources][K or 1]
    for (std::size_t i = 0; i < parts_->sources.size(); ++i)
      sources.push_back(pass.weights_at(offset(i), {tensor(i).numel()}).unbind(0));
    std::vector<at::Tensor> results;
    std::vector<std::vector<batch_statistics>> statistics; // [K]
    for (std::int64_t k = 0; k < pass.models; ++k) {
      std::vector<at::Tensor> own;
      for (const auto& of_models : sources)
        own.push_back(of_models[of_models.size() == 1 ? 0 : static_cast<std::size_t>(k)]);
      std::vector<module_statistics> found;
      results.push_back(follows && pass.first_order ? with_limited_gradient(pass, k, own)
                                                    : of_model(pass, k, own, &found));
      if (pass.statistics)
        statistics.push_back(statistics_of(found, own));
    }
    if (pass.statistics && !statistics[0].empty())
      add_statistics(*pass.statistics, statistics);
    return at::stack(results);
  }

private:
  /// Computes of_model() in a graph of its own, whose backward pass has a limit of memory.
  [[nodiscard]] at::Tensor with_limited_gradient(const function_pass& pass, std::int64_t k,
                                                 const std::vector<at::Tensor>& sources) const {
    segment_pass own;
    for (const auto& source : sources)
      own.leaves.push_back(source.detach().set_requires_grad(source.requires_grad()));
    own.result = of_model(pass, k, own.leaves, nullptr);
    auto result = own.result.detach();
    if (own.result.requires_grad()) {
      const auto gradient = std::make_shared<segment_gradient>(parts_, std::move(own), pass.rows, limit(pass.rows));
      gradient->set_next_edges(torch::autograd::collect_next_edges(sources));
      torch::autograd::create_gradient_edge(result, gradient);
    }
    return result;
  }

  /// @param sources the input, the parameters and the running statistics of model k
  /// @param statistics receives the statistics of batch norms if the pass must not update them
  [[nodiscard]] at::Tensor of_model(const function_pass& pass, std::int64_t k, const std::vector<at::Tensor>& sources,
                                    std::vector<module_statistics>* statistics) const {
    const auto& in = sources[0];
    auto mode = mode_of(pass, k);
    if (!pass.first_order && (pass.statistics || mode.training))
      mode.statistics = statistics;
    std::vector<at::Tensor> values;
    const module_memory memory(limit(pass.rows));
    at::Tensor result;
    auto error = exception_message_of([&] {
      values = values_of(sources);
      result = exported_graph::run_part(parts_->program, parts_->segment.from, input_of(in), parts_->row_sizes, values,
                                        mode);
    });
    auto expected = parts_->out;
    expected.insert(expected.begin(), pass.rows);
    if (error.empty() && !memory.is_exceeded() && result.sizes() != at::IntArrayRef(expected))
      error = fmt::format("{} returned [{}]; expected [{}], as in its trial", parts_->program.calls.back().place,
                          fmt::join(result.sizes(), ", "), fmt::join(expected, ", "));
    error = memory.error_of_pass(std::move(error));
    if (!error.empty())
      throw std::runtime_error(fmt::format("module '{}': forward failed on rows 0 to {} of {}: {}",
                                           parts_->options.file, pass.rows - 1, pass.rows, error));
    if (mode.training && pass.first_order)
      write_statistics(mode, values, sources);
    if (result.dim() == 4)
      result = result.permute({0, 2, 3, 1});
    return result.flatten(1).to(in.scalar_type());
  }

  /// A copy of the values of one model as the file's operators read them; operators may write to it.
  [[nodiscard]] at::Tensor input_of(const at::Tensor& values) const {
    auto sizes = parts_->in;
    sizes.insert(sizes.begin(), values.size(0));
    if (place_.reads_rows) { // channels first, as in the file
      const bool are_rows = parts_->segment.from == parts_->program.rows_slot;
      return in_form(values.reshape(sizes), are_rows ? parts_->options.form : row_form::images).clone();
    }
    if (sizes.size() != 4)
      return values.reshape(sizes).clone(at::MemoryFormat::Contiguous);
    return values.reshape({sizes[0], sizes[2], sizes[3], sizes[1]})
        .permute({0, 3, 1, 2})
        .clone(at::MemoryFormat::Contiguous);
  }

  /// Copies with LibTorch's default alignment, on which bits of matrix products may depend.
  [[nodiscard]] std::vector<at::Tensor> values_of(const std::vector<at::Tensor>& sources) const {
    std::vector<at::Tensor> values(parts_->program.tensors.size());
    for (std::size_t i = 0; i < parts_->sources.size(); ++i)
      values[parts_->sources[i]] = sources[1 + i].reshape(tensor(i).sizes()).clone(at::MemoryFormat::Contiguous);
    for (const auto& held : parts_->program.held)
      if (!values[held.tensor].defined()) // threads share the tensor, and the operators may write to it
        values[held.tensor] = parts_->program.tensors[held.tensor].value.clone();
    return values;
  }

  /// The tensor of the file for a parameter or running statistic.
  [[nodiscard]] const at::Tensor& tensor(std::size_t source) const {
    return parts_->program.tensors[parts_->sources[source]].value;
  }
  [[nodiscard]] std::int64_t offset(std::size_t source) const {
    return source < parts_->parameters ? place_.offsets[source] : (*place_.buffer_offsets)[source - parts_->parameters];
  }

  /// Copies the updated running statistics into the model's weights.
  void write_statistics(const module_mode& mode, const std::vector<at::Tensor>& values,
                        const std::vector<at::Tensor>& sources) const {
    const at::NoGradGuard written;
    for (auto i = parts_->parameters; i < parts_->sources.size(); ++i)
      if (!mode.still[parts_->sources[i]])
        sources[1 + i].detach().copy_(values[parts_->sources[i]].detach());
  }

  /// Batch statistics by channel, and the running statistics of one model.
  [[nodiscard]] std::vector<batch_statistics> statistics_of(const std::vector<module_statistics>& found,
                                                            const std::vector<at::Tensor>& sources) const {
    std::vector<batch_statistics> made;
    for (const auto& each : found) {
      const auto place = [&](std::size_t of) {
        return static_cast<std::size_t>(std::find(parts_->sources.begin(), parts_->sources.end(), of) -
                                        parts_->sources.begin());
      };
      const auto mean = place(each.mean), variance = place(each.variance);
      const auto& name = parts_->program.tensors[each.mean].name;
      made.push_back({.name = name.substr(0, name.rfind('.')),
                      .mean = each.batch_mean,
                      .variance = each.batch_variance,
                      .running_mean = sources[1 + mean],
                      .running_variance = sources[1 + variance],
                      .values = each.values,
                      .mean_offset = offset(mean),
                      .variance_offset = offset(variance),
                      .moves = each.moves,
                      .momentum = each.momentum});
    }
    return made;
  }

  [[nodiscard]] module_mode mode_of(const function_pass& pass, std::int64_t k) const {
    if (!parts_->options.training || !pass.training)
      return {};
    module_mode mode{.training = true, .running_stats_updates = pass.training->running_stats_updates};
    mode.still.resize(parts_->program.tensors.size(), false);
    for (auto i = parts_->parameters; i < parts_->sources.size(); ++i)
      mode.still[parts_->sources[i]] = !pass.updated || !(*pass.updated)[i - parts_->parameters];
    if (!pass.training->streams.empty())
      mode.stream = pass.training->streams[static_cast<std::size_t>(k)];
    mode.stream.index = mode.stream.index << 8U | place_.number; // as in dropout_layer
    return mode;
  }

  [[nodiscard]] std::int64_t limit(std::int64_t rows) const {
    const auto row_bytes = parts_->options.row_bytes;
    const auto weight_bytes = parts_->weights * static_cast<std::int64_t>(sizeof(float));
    return module_memory::limit_of_pass(weight_bytes + rows * row_bytes, rows, row_bytes);
  }

  std::shared_ptr<const segment_parts> parts_;
  foreign_layer::place place_;
};

shape without_rows(const shape& sizes) { return {sizes.begin() + 1, sizes.end()}; }

/// A parameter or buffer with the values of the file.
parameter parameter_of(const module_graph::held_tensor& held, bool moves) {
  const auto value = held.value.cpu().contiguous();
  parameter made{.name = held.name, .shape = value.sizes().vec(), .buffer = moves};
  made.leading.assign(value.const_data_ptr<float>(), value.const_data_ptr<float>() + value.numel());
  return made;
}

} // namespace

foreign_layer make_segment_layer(const graph_view& graph, const graph_segment& segment, exported_program program,
                                 const segment_layer_options& options) {
  segment_parts parts{.program = std::move(program),
                      .segment = segment,
                      .options = options,
                      .row_sizes = without_rows(graph.sizes(graph.program().rows_slot)),
                      .in = without_rows(graph.sizes(segment.from)),
                      .out = without_rows(graph.sizes(segment.to))};
  foreign_layer made{.in_floats = c10::multiply_integers(parts.in), .out = parts.out};
  for (const bool moves : {false, true}) {
    for (const auto& held : parts.program.held) {
      const auto& tensor = parts.program.tensors[held.tensor];
      const bool is_listed = std::find(parts.sources.begin(), parts.sources.end(), held.tensor) != parts.sources.end();
      if (tensor.value.scalar_type() != at::kFloat || (options.training && tensor.moves) != moves || is_listed)
        continue;
      parts.sources.push_back(held.tensor);
      (moves ? made.buffers : made.parameters).push_back(parameter_of(tensor, moves));
      parts.weights += tensor.value.numel();
    }
    if (!moves)
      parts.parameters = parts.sources.size();
  }
  const auto rows = graph.sizes(segment.to)[0];
  for (const auto& call : parts.program.calls)
    for (const auto slot : call.results)
      parts.kept_bytes += c10::multiply_integers(graph.sizes(slot)) / rows * static_cast<std::int64_t>(sizeof(float));
  made.draws = options.training && std::any_of(parts.program.calls.begin(), parts.program.calls.end(),
                                               [](const exported_call& call) { return call.rate_argument >= 0; });
  made.make = [shared = std::make_shared<const segment_parts>(std::move(parts))](const foreign_layer::place& place) {
    return std::make_unique<segment_layer>(shared, place);
  };
  return made;
}

} // namespace mneme
