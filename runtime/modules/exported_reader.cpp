#include "runtime/base/exception_message.hpp"
#include "runtime/modules/allowed_operators.hpp"
#include "runtime/modules/exported_arguments.hpp"
#include "runtime/modules/exported_program.hpp"
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
namespace mneme::exported {
namespace {

using c10::TypeKind;

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// True for nodes that only assert sizes. They are skipped, because LibTorch checks sizes itself.
bool is_assertion(std::string_view target) {
  for (const auto* const start : {"torch.ops.aten._assert_", "torch.ops.aten.sym_constrain_range"})
    if (target.starts_with(start))
      return true;
  return is_one_of(target,
                   {"_operator.ge", "_operator.le", "_operator.gt", "_operator.lt", "_operator.eq", "_operator.ne"});
}

call_kind kind_of(std::string_view name) {
  if (is_one_of(name, {"dropout", "dropout_", "feature_dropout", "feature_dropout_"}))
    return call_kind::dropout;
  if (name == "scaled_dot_product_attention")
    return call_kind::attention;
  if (is_one_of(name, {"lstm", "gru", "rnn_tanh", "rnn_relu"}))
    return call_kind::recurrent;
  if (name == "bernoulli_")
    return call_kind::draw;
  return name == "sym_size" ? call_kind::size : call_kind::operation;
}

class program_reader {
public:
  program_reader(const exported_archive& archive, const at::Device& device) : archive_(archive), device_(device) {}

  exported_program read() {
    const auto& module = field(archive_.program, "graph_module");
    const auto &graph = field(module, "graph"), &signature = field(module, "signature");
    read_inputs(list_field(signature, "input_specs", nodes_max), graph);
    for (const auto& node : list_field(graph, "nodes", nodes_max))
      read_node(node);
    read_outputs(list_field(signature, "output_specs", nodes_max));
    remove_counters();
    drop_unread_tensors();
    record_last_reads();
    made_.slots = slots_.size();
    return std::move(made_);
  }

private:
  // -- tensors and rows -----------------------------------------------------------------------------------------------

  void read_inputs(const json& specs, const json& graph) {
    for (const auto& spec : specs) {
      const auto& [tag, value] = variant_of(spec);
      if (tag == "user_input")
        read_rows(field(value, "arg"), graph);
      else if (is_one_of(tag, {"parameter", "buffer", "tensor_constant"}))
        add_tensor(tag, string_of(field(field(value, "arg"), "name")),
                   string_of(field(value, (tag + "_name").c_str())));
      else
        throw exported_error(fmt::format("forward takes an input of kind {}; expected one tensor, the rows", tag));
    }
    if (made_.rows_slot < 0)
      throw exported_error("forward takes no tensor; expected one, the rows");
  }

  void read_rows(const json& argument, const json& graph) {
    const auto& [tag, value] = variant_of(argument);
    if (tag == "as_none")
      return;
    if (tag != "as_tensor" || made_.rows_slot >= 0)
      throw exported_error("forward takes several inputs or one that is no tensor; expected one tensor, the rows");
    const auto name = string_of(field(value, "name"));
    made_.rows_slot = slots_.define(name, slot_kind::tensor);
    made_.fixed_rows = graph.value(json::json_pointer("/tensor_values/" + name + "/sizes/0/as_int"), std::int64_t{0});
    if (const auto sizes = json::json_pointer("/tensor_values/" + name + "/sizes"); graph.contains(sizes))
      for (const auto& size : graph[sizes])
        made_.row_sizes.push_back(size.value("as_int", std::int64_t{-1}));
  }

  void add_tensor(const std::string& tag, const std::string& slot_name, const std::string& name) {
    const auto stored = archive_.tensors.find(name);
    if (stored == archive_.tensors.end())
      throw exported_error(fmt::format("the archive has no tensor '{}'", name));
    const auto& [value, requires_grad, key] = stored->second;
    const bool is_parameter = tag == "parameter";
    const auto [place, is_new] = tied_.emplace(key, made_.tensors.size());
    if (is_new)
      made_.tensors.push_back({.name = name,
                               .value = value.to(device_),
                               .parameter = is_parameter,
                               .trains = !is_parameter || requires_grad});
    const auto slot = slots_.define(slot_name, is_parameter ? slot_kind::parameter : slot_kind::buffer);
    made_.held.push_back({slot, place->second});
    if (name == "rows" && value.scalar_type() == at::kLong && value.numel() == 4)
      made_.own_rows.assign(value.const_data_ptr<std::int64_t>(), value.const_data_ptr<std::int64_t>() + 4);
  }

  // -- calls ----------------------------------------------------------------------------------------------------------

  void read_node(const json& node) {
    const auto target = string_of(field(node, "target"));
    if (is_assertion(target))
      return;
    constexpr std::string_view operators = "torch.ops.aten.", arithmetic = "_operator.";
    exported_call call;
    call.place = fmt::format("{} ({})", target, node.contains("name") ? string_of(node["name"]) : "?");
    const auto error = torch_error_of([&] {
      if (target.starts_with(operators))
        read_operator(node, target.substr(operators.size()), call);
      else if (target.starts_with(arithmetic))
        read_arithmetic(node, target.substr(arithmetic.size()), call);
      else
        throw exported_error("it is none of the operators that a module may use");
    });
    if (!error.empty())
      throw exported_error(fmt::format("{}: {}", call.place, error));
    made_.calls.push_back(std::move(call));
  }

  void read_arithmetic(const json& node, const std::string& name, exported_call& call) {
    const auto& inputs = list_field(node, "inputs", 2);
    const bool is_known = is_one_of(name, {"add", "sub", "mul", "floordiv", "mod", "neg"});
    if (!is_known || inputs.size() != (name == "neg" ? 1U : 2U))
      throw exported_error("it is none of the operators on sizes that a module may use");
    call.kind = call_kind::arithmetic;
    call.name = name;
    const c10::TypePtr type = c10::SymIntType::get();
    const c10::Argument integer("size", type);
    for (const auto& input : inputs)
      add_argument(field(input, "arg"), integer, slots_, device_, call);
    define_results(node, 1, call);
  }

  void read_operator(const json& node, const std::string& target, exported_call& call) {
    const auto dot = target.find('.');
    call.name = target.substr(0, dot);
    const auto overload = dot == std::string::npos ? std::string{} : target.substr(dot + 1);
    call.kind = kind_of(call.name);
    call.is_uninitialized = is_one_of(call.name, {"empty", "new_empty", "empty_like"});
    if (call.kind != call_kind::size && !call.is_uninitialized && !is_allowed_operator(call.name))
      throw exported_error("it is none of the operators that a module may use");
    call.op = c10::Dispatcher::singleton().findSchema({"aten::" + call.name, overload == "default" ? "" : overload});
    if (!call.op)
      throw exported_error("LibTorch 2.11 does not have this operator");
    const auto& schema = call.op->schema();
    call.contract = find_contract(schema);
    read_arguments(node, schema, call);
    check_results_known(call);
    read_mode(schema, call);
    define_results(node, schema.returns().size(), call);
  }

  void read_arguments(const json& node, const c10::FunctionSchema& schema, exported_call& call) {
    constexpr std::size_t arguments_max = 64;
    std::map<std::string, const json*> given;
    for (const auto& input : list_field(node, "inputs", arguments_max))
      if (!given.emplace(string_of(field(input, "name")), &field(input, "arg")).second)
        throw exported_error("an argument is given twice");
    for (const auto& argument : schema.arguments()) {
      const auto place = given.find(argument.name());
      if (argument.is_out())
        throw exported_error("it writes to a tensor that is given to it (out=)");
      if (place != given.end()) {
        add_argument(*place->second, argument, slots_, device_, call);
        given.erase(place);
      } else if (argument.default_value()) {
        call.arguments.push_back(*argument.default_value());
      } else {
        throw exported_error(fmt::format("argument '{}' is missing", argument.name()));
      }
      if (argument.alias_info() && argument.alias_info()->isWrite())
        record_write(call);
    }
    if (!given.empty())
      throw exported_error(fmt::format("it has no argument '{}'", given.begin()->first));
  }

  /// Checks and records a write to the call's last argument.
  void record_write(exported_call& call) const {
    if (call.operands.empty() || call.operands.back().place + 1 != call.arguments.size())
      throw exported_error("it writes to a value that is no tensor of the graph");
    for (const auto& item : call.operands.back().items) {
      const auto kind = slots_.kind(item.slot);
      if (kind == slot_kind::parameter)
        throw exported_error("it writes to a parameter");
      if (kind == slot_kind::buffer)
        call.written.push_back(item.slot);
    }
    call.writes_buffer = !call.written.empty();
  }

  static void check_results_known(const exported_call& call) {
    const bool depends_on_values =
        call.op->hasTag(at::Tag::data_dependent_output) ||
        (call.op->hasTag(at::Tag::dynamic_output_shape) && call.name != "index"); // index is permitted: its result has
                                                                                  // at most the size of its tensor
    if (depends_on_values)
      throw exported_error("the form of its result depends on values of its tensors");
  }

  /// Determines how the call differs between training and evaluation mode.
  void read_mode(const c10::FunctionSchema& schema, exported_call& call) {
    bool has_flag = false;
    for (std::size_t i = 0; i < call.arguments.size(); ++i) {
      const auto& name = schema.arguments()[i].name();
      const auto& value = call.arguments[i];
      if (is_one_of(name, {"p", "dropout", "dropout_p"}) && value.isDouble() && value.toDouble() > 0.0 &&
          call.kind != call_kind::operation)
        call.rate_argument = static_cast<int>(i);
      if (!is_one_of(name, {"train", "training", "use_input_stats"}))
        continue;
      has_flag = true;
      if (value.isBool() && value.toBool())
        call.mode_argument = static_cast<int>(i);
    }
    if (is_one_of(call.name, {"batch_norm", "instance_norm"}))
      return read_statistics(schema, call);
    if (call.kind == call_kind::operation && call.mode_argument >= 0) // alpha_dropout, rrelu
      made_.unseeded_draw = call.place;
    if (call.kind == call_kind::operation && !has_flag && call.op->hasTag(at::Tag::nondeterministic_seeded))
      throw exported_error("it draws random numbers in evaluation mode, too; export the net after net.eval()");
    number_draws(call);
  }

  void number_draws(exported_call& call) {
    if (call.kind == call_kind::draw && call.rate_argument < 0)
      throw exported_error("it draws with chances that are no number above 0; expected a number");
    const bool needs_flag = call.kind == call_kind::dropout || call.kind == call_kind::recurrent;
    if (call.kind == call_kind::operation || call.rate_argument < 0 || (needs_flag && call.mode_argument < 0)) {
      call.rate_argument = -1;
      return;
    }
    call.first_draw = made_.draws;
    made_.draws += 1;
    if (call.kind != call_kind::recurrent)
      return;
    if (call.op->schema().argumentIndexWithName("batch_sizes"))
      made_.unseeded_draw = call.place;
    constexpr std::int64_t layers_max = 64; // recurrent_error() rejects calls with more layers
    made_.draws += std::clamp<std::int64_t>(integer_argument(call, "num_layers") - 2, 0, layers_max);
  }

  static std::int64_t integer_argument(const exported_call& call, const char* name) {
    const auto& value = call.arguments[static_cast<std::size_t>(*call.op->schema().argumentIndexWithName(name))];
    return value.isInt() ? value.toInt() : 0;
  }

  /// Reads a batch or instance norm in training mode and the buffers of its running statistics.
  void read_statistics(const c10::FunctionSchema& schema, exported_call& call) {
    const auto mean = tensor_argument(schema, call, "running_mean");
    const auto variance = tensor_argument(schema, call, "running_var");
    if (call.mode_argument < 0 || mean < 0 || variance < 0) { // the call is the same in both modes, or has no running
                                                              // statistics
      call.mode_argument = -1;
      return;
    }
    for (const auto slot : {mean, variance})
      if (slots_.kind(slot) != slot_kind::buffer)
        throw exported_error("its running statistics are no buffers");
    call.kind = call_kind::batch_norm;
    call.mean = tensor_in(mean);
    call.variance = tensor_in(variance);
    made_.tensors[call.mean].moves = made_.tensors[call.variance].moves = true;
  }

  static std::int32_t tensor_argument(const c10::FunctionSchema& schema, const exported_call& call, const char* name) {
    const auto place = static_cast<std::size_t>(*schema.argumentIndexWithName(name));
    for (const auto& operand : call.operands)
      if (operand.place == place && operand.kind == exported_operand::form::value)
        return operand.items[0].slot;
    return -1;
  }

  [[nodiscard]] std::size_t tensor_in(std::int32_t slot) const {
    for (const auto& held : made_.held)
      if (held.slot == slot)
        return held.tensor;
    throw exported_error("its running statistics are no buffers");
  }

  void define_results(const json& node, std::size_t returns, exported_call& call) {
    const auto& outputs = list_field(node, "outputs", list_max);
    const bool is_integer = call.kind == call_kind::size || call.kind == call_kind::arithmetic;
    call.returns_list =
        !is_integer && returns == 1 && call.op->schema().returns()[0].type()->kind() == TypeKind::ListType;
    if (call.returns_list) {
      if (outputs.size() != 1 || variant_of(outputs[0]).first != "as_tensors")
        throw exported_error("its result is not a list of tensors");
      for (const auto& part : list_field(outputs[0], "as_tensors", list_max))
        call.results.push_back(slots_.define(string_of(field(part, "name")), slot_kind::tensor));
      return;
    }
    if (outputs.empty() || outputs.size() > returns)
      throw exported_error(fmt::format("it has {} results; expected {}", outputs.size(), returns));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto& [tag, value] = variant_of(outputs[i]);
      const bool is_tensor = !is_integer && call.op->schema().returns()[i].type()->kind() == TypeKind::TensorType;
      if (tag != (is_integer ? "as_sym_int" : "as_tensor") || (!is_integer && !is_tensor))
        throw exported_error(fmt::format("its result is {}; expected a tensor", tag));
      call.results.push_back(slots_.define(string_of(field(value, is_integer ? "as_name" : "name")),
                                           is_integer ? slot_kind::integer : slot_kind::tensor));
    }
  }

  // -- results --------------------------------------------------------------------------------------------------------

  void read_outputs(const json& specs) {
    std::vector<std::string> names;
    for (const auto& spec : specs) {
      const auto& [tag, value] = variant_of(spec);
      const auto& [form, result] = variant_of(field(value, "arg"));
      if (tag != "user_output")
        throw exported_error(fmt::format("its results are in functional form ({}), as run_decompositions() makes it; "
                                         "expected the training IR: {}",
                                         tag, export_line));
      if (form == "as_none")
        continue;
      if (form != "as_tensor")
        throw exported_error(fmt::format("forward returns {}; expected one tensor", form));
      names.push_back(string_of(field(result, "name")));
    }
    if (names.size() != 1)
      throw exported_error(fmt::format("forward returns {} tensors ({}); expected one: export a module whose forward "
                                       "returns the one that the run needs",
                                       names.size(), fmt::join(names, ", ")));
    made_.result_slot = slots_.tensor(names[0]);
  }

  template <class Use>
  static void for_each_read(const exported_call& call, const Use& use) {
    for (const auto& operand : call.operands)
      for (const auto& item : operand.items)
        if (item.slot >= 0)
          use(item.slot);
  }

  /// Removes the updates of step counters (num_batches_tracked), which are not part of a run's weights. Other buffers
  /// that calls write must be float32. No other call may read the result of such a write, because evaluation mode skips
  /// the write.
  void remove_counters() {
    const auto counts = counter_updates();
    std::set<std::int32_t> read{made_.result_slot};
    for (const auto& call : made_.calls)
      if (!call.writes_buffer)
        for_each_read(call, [&](std::int32_t slot) { read.insert(slot); });
    std::vector<exported_call> kept;
    for (std::size_t i = 0; i < made_.calls.size(); ++i) {
      auto& call = made_.calls[i];
      for (const auto slot : call.results)
        if (call.writes_buffer && read.contains(slot))
          throw exported_error(
              fmt::format("{}: a result is read that depends on how often training has called it", call.place));
      if (counts[i])
        continue;
      for (const auto slot : call.written)
        mark_moved(call, made_.tensors[tensor_in(slot)]);
      kept.push_back(std::move(call));
    }
    made_.calls = std::move(kept);
  }

  static void mark_moved(const exported_call& call, module_graph::held_tensor& buffer) {
    if (buffer.value.scalar_type() != at::kFloat)
      throw exported_error(fmt::format("{}: it updates '{}', which is {}; expected float32, or a counter that no other "
                                       "call reads",
                                       call.place, buffer.name, c10::toString(buffer.value.scalar_type())));
    buffer.moves = true;
  }

  /// One entry per call. True for updates of counters: integer buffers that only such updates read. A call whose result
  /// another call reads is not such an update.
  [[nodiscard]] std::vector<bool> counter_updates() const {
    const auto counts_only = [&](const exported_call& call) {
      return call.writes_buffer && std::none_of(call.written.begin(), call.written.end(), [&](std::int32_t slot) {
               return made_.tensors[tensor_in(slot)].value.is_floating_point();
             });
    };
    std::vector<bool> counts;
    for (const auto& call : made_.calls)
      counts.push_back(counts_only(call));
    for (bool changes = true; changes;) {
      changes = false;
      std::set<std::int32_t> read{made_.result_slot};
      for (std::size_t i = 0; i < counts.size(); ++i)
        if (!counts[i])
          for_each_read(made_.calls[i], [&](std::int32_t slot) { read.insert(slot); });
      const auto is_read = [&](std::int32_t slot) { return read.contains(slot); };
      for (std::size_t i = 0; i < counts.size(); ++i) {
        const auto& call = made_.calls[i];
        if (counts[i] && (std::any_of(call.written.begin(), call.written.end(), is_read) ||
                          std::any_of(call.results.begin(), call.results.end(), is_read))) {
          counts[i] = false;
          changes = true;
        }
      }
    }
    return counts;
  }

  void drop_unread_tensors() {
    std::set<std::int32_t> read{made_.result_slot};
    for (const auto& call : made_.calls)
      for_each_read(call, [&](std::int32_t slot) { read.insert(slot); });
    std::vector<bool> is_read(made_.tensors.size());
    std::erase_if(made_.held, [&](const auto& held) { return !read.contains(held.slot); });
    for (const auto& held : made_.held)
      is_read[held.tensor] = true;
    std::vector<std::size_t> places(made_.tensors.size());
    std::vector<module_graph::held_tensor> kept;
    for (std::size_t i = 0; i < is_read.size(); ++i) {
      places[i] = kept.size();
      if (is_read[i])
        kept.push_back(std::move(made_.tensors[i]));
    }
    made_.tensors = std::move(kept);
    for (auto& held : made_.held)
      held.tensor = places[held.tensor];
    for (auto& call : made_.calls)
      if (call.kind == call_kind::batch_norm) {
        call.mean = places[call.mean];
        call.variance = places[call.variance];
      }
  }

  void record_last_reads() {
    std::set<std::int32_t> read{made_.result_slot};
    for (auto call = made_.calls.rbegin(); call != made_.calls.rend(); ++call) {
      for (const auto result : call->results)
        if (!read.contains(result))
          call->last_read.push_back(result);
      for_each_read(*call, [&](std::int32_t slot) {
        if (read.insert(slot).second)
          call->last_read.push_back(slot);
      });
    }
  }

  const exported_archive& archive_;
  at::Device device_;
  exported_program made_;
  slot_table slots_;
  std::map<std::string, std::size_t, std::less<>> tied_;
};

} // namespace
} // namespace mneme::exported

namespace mneme {

exported_program read_exported_program(const exported_archive& archive, const at::Device& device) {
  return exported::program_reader(archive, device).read();
}

} // namespace mneme
