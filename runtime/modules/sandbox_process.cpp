#include "runtime/base/exception_message.hpp"
#include "runtime/base/intra_op_threads.hpp"
#include "runtime/modules/module_file.hpp"
#include "runtime/modules/module_probe.hpp"
#include "runtime/modules/module_sandbox.hpp"
#include "runtime/modules/sandbox_restrictions.hpp"
#include "runtime/modules/sandbox_start.hpp"
#include <ATen/ATen.h>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <torch/csrc/autograd/autograd.h>
#include <unistd.h>
namespace mneme {
namespace {

std::optional<std::int64_t> number_of(std::string_view word) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc{} && end == word.data() + word.size() ? std::optional(value) : std::nullopt;
}

std::optional<sandbox_request> question_of(std::span<const char* const> words) {
  std::vector<std::int64_t> numbers;
  for (const auto* const word : words.subspan(1))
    if (const auto number = number_of(word))
      numbers.push_back(*number);
  if (numbers.size() != 10 || numbers.size() + 1 != words.size() || numbers[3] < 0 ||
      numbers[3] > static_cast<std::int64_t>(row_form::tokens))
    return std::nullopt;
  return sandbox_request{.input = {numbers[0], numbers[1], numbers[2]},
                         .form = static_cast<row_form>(numbers[3]),
                         .tokens = numbers[4],
                         .own_rows = numbers[5] != 0,
                         .trained = numbers[6] != 0,
                         .training = numbers[7] != 0,
                         .seconds = numbers[8],
                         .memory_bytes = numbers[9]};
}

std::vector<std::uint8_t> everything_from(int file) {
  std::vector<std::uint8_t> bytes;
  std::size_t filled = 0;
  for (ssize_t count = 1; count > 0 || (count < 0 && errno == EINTR);) {
    if (bytes.size() - filled < (std::size_t{1} << 16))
      bytes.resize(std::max<std::size_t>(2 * bytes.size(), std::size_t{1} << 20));
    count = ::read(file, bytes.data() + filled, bytes.size() - filled);
    filled += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  bytes.resize(filled);
  return bytes;
}

/// Triggers the one-time initialization of LibTorch, such as processor detection, before system calls are restricted.
void warm_up() {
  const auto rows = at::ones({2, 3, 8, 8}), weights = at::ones({4, 3, 3, 3}).requires_grad_(true);
  const auto result = at::linear(at::conv2d(rows, weights).flatten(1), at::ones({2, 144})).sum();
  static_cast<void>(torch::autograd::grad({result}, {weights}));
}

/// Loads and probes the module. Returns the probe's result, or all reasons to reject the module.
tl::expected<probe_result, std::vector<std::string>> probe_file(std::span<const std::uint8_t> file,
                                                                const sandbox_request& question) {
  const at::Device cpu(at::kCPU);
  const auto entries = zip_entries(file, inflated_bytes_max);
  if (!entries)
    return tl::unexpected(std::vector{entries.error().text});
  const auto graph = read_module_graph(file, *entries, cpu);
  if (!graph)
    return tl::unexpected(std::vector{graph.error()});
  const auto rows = rows_of_trial(**graph, {.input = question.input, .form = question.form, .tokens = question.tokens},
                                  question.own_rows);
  if (!rows)
    return tl::unexpected(std::vector{rows.error()});
  return probe_module(**graph, rows->rows, cpu,
                      {.trained = question.trained, .training = question.training, .rows_max = rows->most});
}

int say(char verdict, const std::vector<std::string>& reasons) {
  const auto text = fmt::format("{}{}", verdict, fmt::join(reasons, std::string_view("\0", 1)));
  for (std::size_t at = 0; at < text.size();) {
    const auto count = ::write(STDOUT_FILENO, text.data() + at, text.size() - at);
    if (count <= 0)
      return 1;
    at += static_cast<std::size_t>(count);
  }
  return 0;
}

} // namespace

int serve_sandbox_request(std::span<const std::uint8_t> file, const sandbox_request& question) {
  disable_intra_op_threads();
  warm_up();
  if (const auto reason = restrict_process({.seconds = question.seconds, .memory_bytes = question.memory_bytes});
      !reason.empty())
    return say('?', {reason});
  try {
    tl::expected<probe_result, std::vector<std::string>> tried;
    if (auto reason = torch_error_of([&] { tried = probe_file(file, question); }); !reason.empty())
      return say('-', {std::move(reason)});
    if (!tried)
      return say('-', tried.error());
    return say('+', {fmt::format("{}", tried->width), fmt::format("{}", tried->rows_at_once),
                     fmt::format("{}", tried->row_bytes)});
  } catch (const std::bad_alloc&) {
    return say('-', {"the module needs more memory than a trial may take"});
  }
}

int run_probe_process(std::span<const char* const> words) {
  detach_from_parent();
  const auto question = question_of(words);
  if (!question)
    return 1;
  const auto file = everything_from(STDIN_FILENO);
  ::close(STDIN_FILENO);
  return serve_sandbox_request(file, *question);
}

} // namespace mneme
