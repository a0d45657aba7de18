#include "runtime/modules/exported_graph.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/modules/compute_in_mode.hpp"
#include "runtime/modules/contracts/call_errors.hpp"
#include "runtime/modules/contracts/operator_work.hpp"
#include "runtime/modules/exported_arguments.hpp"
#include "runtime/modules/module_memory.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <stdexcept>
namespace mneme {
namespace {

using c10::IValue;

/// One forward pass: holds the values of all slots and runs the calls in order.
class program_pass {
public:
  program_pass(const exported_program& program, const at::Tensor& rows, std::span<const at::Tensor> values,
               const module_mode& mode)
      : program_(program), mode_(mode), frame_(static_cast<std::size_t>(program.slots)),
        work_max_(work_row_max * static_cast<double>(std::max<std::int64_t>(rows.dim() > 0 ? rows.size(0) : 1, 1))) {
    at(program.rows_slot) = rows;
    for (const auto& held : program.held)
      at(held.slot) = values[held.tensor];
  }

  void set(std::int32_t slot, const at::Tensor& value) { at(slot) = value; }

  /// @param sizes receives the shapes of all tensors by slot, unless null
  at::Tensor run(std::vector<std::vector<std::int64_t>>* sizes = nullptr) {
    sizes_ = sizes;
    if (sizes_) {
      sizes_->resize(frame_.size());
      for (std::size_t slot = 0; slot < frame_.size(); ++slot)
        if (frame_[slot].isTensor())
          (*sizes_)[slot] = frame_[slot].toTensor().sizes().vec();
    }
    for (const auto& call : program_.calls) {
      if (call.writes_buffer && call.kind != call_kind::batch_norm && !mode_.training)
        continue;
      if (auto error = torch_error_of([&] { run_call(call); }); !error.empty())
        throw std::runtime_error(fmt::format("{}: {}", call.place, error));
      for (const auto slot : call.last_read)
        at(slot) = IValue();
    }
    return at(program_.result_slot).toTensor();
  }

private:
  static constexpr double work_row_max = 1e12; // limit of multiplications per row; the largest nets of today need 1e11

  IValue& at(std::int32_t slot) { return frame_[static_cast<std::size_t>(slot)]; }

  void run_call(const exported_call& call) {
    fill_arguments(call);
    if (call.kind == call_kind::size) {
      const auto size = stack_[0].toTensor().size(stack_[1].toInt());
      stack_.assign(1, size);
    } else if (call.kind == call_kind::arithmetic) {
      stack_.assign(1, computed_size(call));
    } else {
      check(call);
      compute_in_mode(call, stack_, mode_);
      if (call.is_uninitialized)
        stack_[0].toTensor().zero_();
    }
    store_results(call);
  }

  void fill_arguments(const exported_call& call) {
    using form = exported_operand::form;
    stack_ = call.arguments;
    for (const auto& operand : call.operands) {
      auto& place = stack_[operand.place];
      switch (operand.kind) {
      case form::value:
        place = at(operand.items[0].slot);
        break;
      case form::number_tensor:
        place = exported::number_tensor(at(operand.items[0].slot).toInt());
        break;
      case form::tensors:
        place = tensors_of(operand);
        break;
      case form::optional_tensors:
        place = optional_tensors_of(operand);
        break;
      case form::integers:
        place = integers_of(operand);
        break;
      }
    }
  }

  c10::List<at::Tensor> tensors_of(const exported_operand& operand) {
    c10::List<at::Tensor> tensors;
    for (const auto& item : operand.items)
      tensors.push_back(at(item.slot).toTensor());
    return tensors;
  }

  c10::List<std::optional<at::Tensor>> optional_tensors_of(const exported_operand& operand) {
    c10::List<std::optional<at::Tensor>> tensors;
    for (const auto& item : operand.items)
      tensors.push_back(item.slot < 0 ? std::optional<at::Tensor>() : at(item.slot).toTensor());
    return tensors;
  }

  std::vector<std::int64_t> integers_of(const exported_operand& operand) {
    std::vector<std::int64_t> integers;
    for (const auto& item : operand.items)
      integers.push_back(item.slot < 0 ? item.constant : at(item.slot).toInt());
    return integers;
  }

  /// Integer arithmetic on sizes. Limits results to 2^31 so that products in kernels do not overflow.
  std::int64_t computed_size(const exported_call& call) {
    constexpr std::int64_t most = std::int64_t{1} << 31;
    const auto a = stack_[0].toInt(), b = stack_.size() > 1 ? stack_[1].toInt() : 0;
    const auto& name = call.name;
    std::int64_t result = 0;
    bool overflows = false;
    if (name == "add")
      overflows = __builtin_add_overflow(a, b, &result);
    else if (name == "sub" || name == "neg")
      overflows = name == "sub" ? __builtin_sub_overflow(a, b, &result) : __builtin_sub_overflow(b, a, &result);
    else if (name == "mul")
      overflows = __builtin_mul_overflow(a, b, &result);
    else
      result = floor_result(name == "mod", a, b);
    if (overflows || result > most || result < -most)
      throw std::runtime_error(fmt::format("a size is beyond {}", most));
    return result;
  }

  /// Python's a // b or a % b, which round toward negative infinity.
  static std::int64_t floor_result(bool is_remainder, std::int64_t a, std::int64_t b) {
    if (b == 0 || (b == -1 && a == std::numeric_limits<std::int64_t>::min()))
      throw std::runtime_error(fmt::format("a size of {} is divided by {}", a, b));
    const auto remainder = a % b;
    const bool is_rounded_up = remainder != 0 && (remainder < 0) != (b < 0);
    if (is_remainder)
      return is_rounded_up ? remainder + b : remainder;
    return a / b - (is_rounded_up ? 1 : 0);
  }

  void check(const exported_call& call) {
    const operator_call made{call.op->schema(), stack_};
    if (call.contract) {
      if (auto error = call.contract->error(made); !error.empty())
        throw std::runtime_error(error);
      if (call.contract->bytes)
        module_memory::charge(call.contract->bytes(made));
    }
    work_ += work_of_call(made);
    if (!(work_ <= work_max_))
      throw std::runtime_error(fmt::format("forward needs more than {:.0e} multiplications for a row", work_row_max));
  }

  void store_results(const exported_call& call) {
    if (call.returns_list) {
      auto parts = stack_.at(0).toTensorVector();
      if (parts.size() != call.results.size())
        throw std::runtime_error(
            fmt::format("it returned {} tensors; expected {}, as in the file", parts.size(), call.results.size()));
      for (std::size_t i = 0; i < parts.size(); ++i)
        store(call.results[i], std::move(parts[i]));
      return;
    }
    for (std::size_t i = 0; i < call.results.size(); ++i)
      store(call.results[i], std::move(stack_.at(i)));
  }

  void store(std::int32_t slot, IValue value) {
    constexpr auto numbers_max = contracts::call_limits::numbers_max;
    if (value.isTensor()) {
      const auto& tensor = value.toTensor();
      if (!tensor.defined() || tensor.layout() != at::kStrided || at::isComplexType(tensor.scalar_type()) ||
          at::isQIntType(tensor.scalar_type()))
        throw std::runtime_error("its result is no tensor of plain numbers");
      if (tensor.numel() > numbers_max)
        throw std::runtime_error(
            fmt::format("its result has {} numbers; expected at most {}", tensor.numel(), numbers_max));
      if (sizes_)
        (*sizes_)[static_cast<std::size_t>(slot)] = tensor.sizes().vec();
    }
    at(slot) = std::move(value);
  }

  const exported_program& program_;
  const module_mode& mode_;
  std::vector<IValue> frame_;
  std::vector<IValue> stack_;
  std::vector<std::vector<std::int64_t>>* sizes_ = nullptr;
  double work_ = 0.0, work_max_;
};

} // namespace

tl::expected<exported_graph, std::string> exported_graph::read(std::span<const std::uint8_t> file,
                                                               const std::vector<zip_entry>& entries,
                                                               const at::Device& device) {
  exported_program program;
  if (auto error =
          torch_error_of([&] { program = read_exported_program(read_exported_archive(file, entries), device); });
      !error.empty())
    return tl::unexpected(std::move(error));
  exported_graph graph;
  graph.has_training_mode_ = std::any_of(program.calls.begin(), program.calls.end(), [](const exported_call& call) {
    return call.has_mode() || call.writes_buffer;
  });
  graph.program_ = std::make_shared<const exported_program>(std::move(program));
  return graph;
}

std::string exported_graph::untrained_layer() const {
  const auto& calls = program_->calls;
  const auto call = std::find_if(calls.begin(), calls.end(), [](const exported_call& each) {
    return each.kind == call_kind::dropout || each.name == "batch_norm";
  });
  return has_training_mode_ || call == calls.end() ? "" : call->place;
}

at::Tensor exported_graph::run(const at::Tensor& rows, std::span<const at::Tensor> values,
                               const module_mode& mode) const {
  return program_pass(*program_, rows, values, mode).run();
}

at::Tensor exported_graph::run_part(const exported_program& part, std::int32_t from, const at::Tensor& in,
                                    at::IntArrayRef row_sizes, std::span<const at::Tensor> values,
                                    const module_mode& mode) {
  auto shape = row_sizes.vec();
  shape.insert(shape.begin(), in.size(0));
  program_pass pass(part, at::zeros({1}, in.options()).expand(shape), values, mode);
  pass.set(from, in);
  return pass.run();
}

std::vector<std::vector<std::int64_t>> exported_graph::sizes(const at::Tensor& rows) const {
  std::vector<at::Tensor> values;
  for (const auto& tensor : tensors())
    values.push_back(tensor.value);
  std::vector<std::vector<std::int64_t>> sizes;
  const module_mode evaluation;
  static_cast<void>(program_pass(*program_, rows, values, evaluation).run(&sizes));
  return sizes;
}

} // namespace mneme
