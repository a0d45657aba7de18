// Reads exported programs from stdin, each a line with its number of bytes followed by the bytes. Runs each in this
// process on rows [3, 3, 10, 10], in training mode with gradients and in evaluation mode. Prints a line per program:
// "taken", or "refused: " and the reason.
#include "runtime/base/arithmetic.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/base/intra_op_threads.hpp"
#include "runtime/modules/exported_graph.hpp"
#include "runtime/modules/module_memory.hpp"
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <iostream>
#include <string>
#include <torch/csrc/autograd/autograd.h>
#include <unistd.h>

namespace {

using namespace mneme;

constexpr std::uint64_t inflated_bytes_max = std::uint64_t{1} << 26;
constexpr std::int64_t memory_bytes_max = std::int64_t{1} << 30;
constexpr unsigned seconds_max = 120;

void run_in_both_modes(const module_graph& graph) {
  std::vector<at::Tensor> values, leaves;
  for (const auto& held : graph.tensors()) {
    values.push_back(held.value.clone());
    if (held.parameter && held.value.is_floating_point())
      leaves.push_back(values.back().requires_grad_(true));
  }
  const auto rows = at::ones({3, 3, 10, 10});
  const auto result = graph.run(rows.clone(), values, {.training = true});
  if (result.requires_grad() && !leaves.empty())
    static_cast<void>(torch::autograd::grad({result.sum()}, leaves, {}, false, false, true));
  const at::NoGradGuard no_gradients;
  static_cast<void>(graph.run(rows.clone(), values));
}

std::string first_error(std::span<const std::uint8_t> file) {
  const module_memory memory(memory_bytes_max);
  const auto entries = zip_entries(file, inflated_bytes_max);
  if (!entries)
    return entries.error().text;
  const auto graph = exported_graph::read(file, *entries, at::Device(at::kCPU));
  if (!graph)
    return graph.error();
  run_in_both_modes(*graph);
  return "";
}

/// The result of one program, as one line.
std::string result_of(std::span<const std::uint8_t> file) {
  std::string error;
  std::string torch_error; // replaces LibTorch's stack traces
  const auto thrown = exception_message_of([&] { torch_error = torch_error_of([&] { error = first_error(file); }); });
  for (const auto& text : {torch_error, thrown})
    if (!text.empty())
      error = text;
  for (auto& letter : error)
    if (static_cast<unsigned char>(letter) < ' ')
      letter = ' ';
  return error.empty() ? "taken" : "refused: " + error;
}

} // namespace

int main() {
  use_arithmetic();
  disable_intra_op_threads();
  std::string line, content;
  while (std::getline(std::cin, line)) {
    content.resize(std::stoul(line));
    if (!std::cin.read(content.data(), static_cast<std::streamsize>(content.size())))
      return 1;
    ::alarm(seconds_max); // a program that does not end is a fault, like one that crashes
    std::cout << result_of({reinterpret_cast<const std::uint8_t*>(content.data()), content.size()}) << std::endl;
    ::alarm(0);
  }
}
