#include "runtime/modules/native_graph.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/failure_of.hpp"
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <torch/csrc/inductor/aoti_runner/model_container_runner_cpu.h>
namespace mneme {
namespace {

using differences = std::vector<std::string>;

constexpr std::size_t callers_max = 64; // at one time; further ones wait for each other

/// A library as a file for as long as it takes to load it: what has been mapped stays when the file is gone, and a
/// process that is killed leaves nothing behind.
class library_file {
public:
  explicit library_file(const std::string& bytes) {
    auto name = (std::filesystem::temp_directory_path() / "mneme-module-XXXXXX").string();
    if (!::mkdtemp(name.data()))
      throw std::system_error(errno, std::generic_category(), "no folder can be made below '" + name + "'");
    folder_ = name;
    std::ofstream file(path(), std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!file.flush())
      throw std::runtime_error("'" + path() + "' cannot be written");
  }
  ~library_file() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  library_file(const library_file&) = delete;
  library_file& operator=(const library_file&) = delete;
  [[nodiscard]] std::string path() const { return (folder_ / "net.so").string(); }

private:
  std::filesystem::path folder_;
};

/// Tensors of a tree of arguments or results as PyTorch writes it: nodes without a type.
std::int64_t leaves_of(const nlohmann::json& tree) {
  if (tree.is_object() && tree.contains("type") && tree["type"].is_null())
    return 1;
  std::int64_t count = 0;
  if (tree.is_structured())
    for (const auto& part : tree)
      count += leaves_of(part);
  return count;
}

/// @param specification of arguments, of results
differences signature_differences(const std::vector<std::string>& specification) {
  if (specification.size() != 2)
    return {"the package does not say what forward takes and returns"};
  differences wrong;
  const auto taken = leaves_of(nlohmann::json::parse(specification[0]));
  const auto returned = leaves_of(nlohmann::json::parse(specification[1]));
  if (taken != 1)
    wrong.push_back(fmt::format("forward takes {} tensors; expected one, the rows", taken));
  if (returned != 1)
    wrong.push_back(fmt::format("forward returns {} tensors; expected one, a row of numbers for each row", returned));
  return wrong;
}

} // namespace

struct native_graph::loaded {
  torch::inductor::AOTIModelContainerRunnerCpu runner;

  explicit loaded(const library_file& file) : runner(file.path(), callers_max) {}
  /// By name.
  [[nodiscard]] std::map<std::string, at::Tensor> constants() const {
    const auto constants = runner.extract_constants_map(false);
    return {constants.begin(), constants.end()};
  }
};

tl::expected<native_graph, std::vector<std::string>> native_graph::load(const native_package& package) {
  MNEME_CHECK(package.rows_of_call > 0, package.rows_of_call);
  native_graph graph;
  graph.rows_of_call_ = package.rows_of_call;
  differences wrong;
  const auto why = torch_refusal([&] {
    graph.code_ = std::make_shared<loaded>(library_file(package.library));
    wrong = signature_differences(graph.code_->runner.get_call_spec());
    if (wrong.empty())
      for (const auto& [name, value] : graph.code_->constants())
        graph.tensors_.push_back({.name = name, .value = value.detach().clone(), .parameter = false});
  });
  if (!why.empty())
    wrong = {"its code cannot be loaded: " + why};
  if (!wrong.empty())
    return tl::unexpected(std::move(wrong));
  return graph;
}

at::Tensor native_graph::run(const at::Tensor& rows, std::span<const at::Tensor> /*values*/) const {
  MNEME_CHECK(rows.size(0) == rows_of_call_, rows.sizes());
  if (at::GradMode::is_enabled() && rows.requires_grad())
    throw std::runtime_error("a gradient is asked for through the compiled code of a module, which has none; expected "
                             "a TorchScript module");
  const at::NoGradGuard no_gradients;
  auto scores = code_->runner.run({rows.contiguous()});
  if (scores.size() != 1)
    throw std::runtime_error(
        fmt::format("the compiled code of a module returned {} tensors; expected one", scores.size()));
  return std::move(scores[0]);
}

std::vector<std::string> native_graph::overwritten() const {
  const auto now = code_->constants();
  std::vector<std::string> names;
  for (const auto& held : tensors_)
    if (!at::equal(now.at(held.name), held.value))
      names.push_back(held.name);
  return names;
}

} // namespace mneme
