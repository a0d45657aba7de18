/// exported_programs: programs in the format of torch.export.save, built by tests call by call.
#pragma once
#include "runtime/modules/exported_graph.hpp"
#include "tests/support/archives.hpp"
#include <ATen/ATen.h>
#include <nlohmann/json.hpp>
#include <stdexcept>
namespace mneme::test {

using json = nlohmann::json;

inline json tensor_named(const std::string& name) { return {{"as_tensor", {{"name", name}}}}; }
inline json number(std::int64_t value) { return {{"as_int", value}}; }
inline json numbers(const std::vector<std::int64_t>& values) { return {{"as_ints", values}}; }
inline json real(double value) { return {{"as_float", value}}; }
inline json flag(bool value) { return {{"as_bool", value}}; }
inline json tensors_named(const std::vector<std::string>& names) {
  json list = json::array();
  for (const auto& name : names)
    list.push_back({{"name", name}});
  return {{"as_tensors", list}};
}

/// Program with the input "x". Its parts are public, so that a test can damage them.
class made_program {
public:
  struct held {
    std::string kind = "parameter"; ///< Else "buffer".
    std::string name{};
    at::Tensor value{};
    std::string stored_as{}; ///< Archive entry with its bytes; tied weights share one.
  };

  json tensor(const std::string& name, const at::Tensor& value, const std::string& kind = "parameter") {
    tensors.push_back({kind, name, value.contiguous(), "weight_" + std::to_string(tensors.size())});
    return tensor_named(name);
  }
  json parameter(const std::string& name, const at::Tensor& value) { return tensor(name, value); }
  json buffer(const std::string& name, const at::Tensor& value) { return tensor(name, value, "buffer"); }

  /// Adds a call. @param target such as "conv2d.default" @return the name of its result
  json call(const std::string& target, const std::vector<std::pair<std::string, json>>& given) {
    return call(target, given, {{"v" + std::to_string(nodes.size())}}).front();
  }
  std::vector<json> call(const std::string& target, const std::vector<std::pair<std::string, json>>& given,
                         const std::vector<std::string>& results, bool as_list = false) {
    json inputs = json::array(), outputs = json::array();
    for (const auto& [name, value] : given)
      inputs.push_back({{"name", name}, {"arg", value}, {"kind", 1}});
    std::vector<json> made;
    for (const auto& name : results) {
      made.push_back(tensor_named(name));
      outputs.push_back(made.back());
    }
    if (as_list)
      outputs = json::array({tensors_named(results)});
    nodes.push_back({{"target", (target.starts_with("_operator") ? "" : "torch.ops.aten.") + target},
                     {"inputs", inputs},
                     {"outputs", outputs},
                     {"name", results.front()}});
    return made;
  }
  /// Adds a call that gives an integer with this name.
  json size_call(const std::string& target, const std::vector<std::pair<std::string, json>>& given,
                 const std::string& name) {
    call(target, given, {name});
    nodes.back()["outputs"] = json::array({{{"as_sym_int", {{"as_name", name}}}}});
    return {{"as_sym_int", {{"as_name", name}}}};
  }

  [[nodiscard]] archive_entries entries(const std::string& result = "") const {
    json config = json::object(), specs = json::array();
    archive_entries made;
    for (const auto& [kind, name, value, stored_as] : tensors) {
      config[name] = {
          {"path_name", stored_as}, {"use_pickle", false}, {"tensor_meta", meta_of(value, trains(kind, name))}};
      made.emplace_back("model/data/weights/" + stored_as,
                        std::string(static_cast<const char*>(value.const_data_ptr()), value.nbytes()));
      specs.push_back({{kind, {{"arg", {{"name", name}}}, {kind + "_name", name}}}});
    }
    std::sort(made.begin(), made.end());
    made.erase(std::unique(made.begin(), made.end()), made.end());
    specs.push_back({{"user_input", {{"arg", tensor_named("x")}}}});
    const auto returned = !result.empty() ? result : nodes.empty() ? "x" : nodes.back()["name"].get<std::string>();
    json program = {{"graph_module",
                     {{"graph", {{"inputs", json::array()}, {"nodes", nodes}, {"tensor_values", json::object()}}},
                      {"signature",
                       {{"input_specs", specs},
                        {"output_specs", json::array({{{"user_output", {{"arg", tensor_named(returned)}}}}})}}}}},
                    {"schema_version", {{"major", 8}, {"minor", 17}}},
                    {"verifiers", {"TRAINING"}}};
    if (!changes.empty())
      program = program.patch(changes);
    made.emplace_back("model/models/model.json", program.dump());
    made.emplace_back("model/data/weights/model_weights_config.json", json{{"config", config}}.dump());
    made.emplace_back("model/data/constants/model_constants_config.json", json{{"config", json::object()}}.dump());
    made.emplace_back("model/archive_format", "pt2");
    made.emplace_back("model/archive_version", "0");
    made.emplace_back("model/byteorder", "little");
    return made;
  }
  [[nodiscard]] std::string bytes(const std::string& result = "") const { return zip_of(entries(result)); }

  std::vector<held> tensors{};
  std::vector<std::string> frozen{}; ///< Parameters with requires_grad = False.
  std::vector<json> nodes{};
  json changes = json::array(); ///< Of models/model.json, as JSON Patch.

private:
  [[nodiscard]] bool trains(const std::string& kind, const std::string& name) const {
    return kind == "parameter" && std::find(frozen.begin(), frozen.end(), name) == frozen.end();
  }

  /// Number of a type in torch._export.serde.schema.
  static int type_of(const at::Tensor& value) {
    switch (value.scalar_type()) {
    case at::kLong:
      return 5;
    case at::kHalf:
      return 6;
    case at::kBool:
      return 12;
    default:
      return 7;
    }
  }

  static json meta_of(const at::Tensor& value, bool trains) {
    json sizes = json::array(), strides = json::array();
    for (const auto size : value.sizes())
      sizes.push_back(number(size));
    for (const auto stride : value.strides())
      strides.push_back(number(stride));
    return {{"dtype", type_of(value)},     {"sizes", sizes}, {"strides", strides},
            {"storage_offset", number(0)}, {"layout", 7},    {"requires_grad", trains}};
  }
};

/// Reads an archive. Fails the test with the reason if it is refused.
inline tl::expected<exported_graph, std::string> read_program(const std::string& file) {
  const auto bytes = std::span(reinterpret_cast<const std::uint8_t*>(file.data()), file.size());
  const auto entries = zip_entries(bytes, std::uint64_t{1} << 26);
  if (!entries)
    return tl::unexpected(entries.error().text);
  return exported_graph::read(bytes, *entries, at::Device(at::kCPU));
}

inline std::vector<at::Tensor> values_of(const module_graph& graph) {
  std::vector<at::Tensor> values;
  for (const auto& held : graph.tensors())
    values.push_back(held.value.clone());
  return values;
}

} // namespace mneme::test
