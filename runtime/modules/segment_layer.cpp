// The operators of a file as one layer of a net.
#include "runtime/base/autograd_on.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/models/function_layer.hpp"
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
  /// [tensors of the program] Index of the parameter, or nullopt for a constant.
  std::vector<std::optional<std::size_t>> parameter_of{};
  std::int64_t weights = 0;    ///< Number of values in all parameters.
  std::int64_t kept_bytes = 0; ///< Bytes of the results of all operators, for one row.
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
    std::vector<at::Tensor> results;
    for (std::int64_t k = 0; k < pass.models; ++k)
      results.push_back(of_model(pass, k, in.select(0, k)));
    return at::stack(results);
  }

private:
  [[nodiscard]] at::Tensor of_model(const function_pass& pass, std::int64_t k, const at::Tensor& in) const {
    const auto bytes_max = limit(pass.rows);
    const module_memory memory(bytes_max);
    at::Tensor result;
    auto error = exception_message_of([&] {
      result = exported_graph::run_part(parts_->program, parts_->segment.from, input_of(in), parts_->row_sizes,
                                        values_of(pass, k), mode_of(pass, k));
    });
    auto expected = parts_->out;
    expected.insert(expected.begin(), pass.rows);
    if (memory.is_exceeded())
      error = fmt::format("it needs more than {} bytes of memory, the limit for its rows (docs/modules.md)", bytes_max);
    else if (error.empty() && result.sizes() != at::IntArrayRef(expected))
      error = fmt::format("{} returned [{}]; expected [{}], as in its trial", parts_->program.calls.back().place,
                          fmt::join(result.sizes(), ", "), fmt::join(expected, ", "));
    if (!error.empty())
      throw std::runtime_error(fmt::format("module '{}': forward failed on rows 0 to {} of {}: {}",
                                           parts_->options.file, pass.rows - 1, pass.rows, error));
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
  [[nodiscard]] std::vector<at::Tensor> values_of(const function_pass& pass, std::int64_t k) const {
    std::vector<at::Tensor> values(parts_->program.tensors.size());
    for (const auto& held : parts_->program.held) {
      const auto& value = parts_->program.tensors[held.tensor].value;
      if (values[held.tensor].defined())
        continue;
      if (const auto entry = parts_->parameter_of[held.tensor]; entry) {
        const auto all = pass.weights_at(place_.offsets[*entry], {value.numel()});
        values[held.tensor] =
            all.select(0, all.size(0) == 1 ? 0 : k).reshape(value.sizes()).clone(at::MemoryFormat::Contiguous);
      } else {
        values[held.tensor] = value.clone(); // threads share the tensor, and the operators may write to it
      }
    }
    return values;
  }

  [[nodiscard]] module_mode mode_of(const function_pass& pass, std::int64_t k) const {
    if (!parts_->options.training || !pass.training)
      return {};
    module_mode mode{.training = true};
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
parameter parameter_of(const module_graph::held_tensor& held) {
  const auto value = held.value.cpu().contiguous();
  parameter made{.name = held.name, .shape = value.sizes().vec()};
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
  parts.parameter_of.resize(parts.program.tensors.size());
  for (const auto& held : parts.program.held) {
    const auto& tensor = parts.program.tensors[held.tensor];
    if (tensor.value.scalar_type() != at::kFloat || parts.parameter_of[held.tensor])
      continue;
    parts.parameter_of[held.tensor] = made.parameters.size();
    made.parameters.push_back(parameter_of(tensor));
    parts.weights += tensor.value.numel();
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
