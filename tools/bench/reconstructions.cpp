// bench_reconstructions: reconstructs images of CIFAR-100 from their gradients in LGA's encoder, several at a time.
// Prints one JSON object: recovered labels, decrease of the objective, PSNR against the images, CPU time.
//   bench_reconstructions [--images N] [--width K] [--steps S] [--rate R] [--autograd]
// With --autograd, LibTorch's autograd computes the gradients, as in a straightforward program.
#include "runtime/base/digest.hpp"
#include "runtime/data/data_sources.hpp"
#include "runtime/training/executor.hpp"
#include "strategies/lga/gradient_inversion.hpp"
#include "tools/bench/bench_seconds.hpp"
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
using namespace mneme;

namespace {

constexpr std::int64_t classes = 100, kept = 20; // kept: number of iterates that the proxy keeps

struct wanted {
  std::int64_t images = 60, width = 60, steps = 250;
  double rate = 1.0;
  bool by_autograd = false;
};

/// The first images of the file, in the proxy's input format, [N, 3, 32, 32] in [0, 1], with their labels.
std::pair<at::Tensor, std::vector<std::int64_t>> photographs(std::int64_t count) {
  const auto data = load_data({.name = "cifar100", .train_rows = count, .test_rows = 1}, 1);
  if (!data) {
    fmt::print(stderr, "bench_reconstructions: {}\n", diagnostic_text(data.error().front()));
    std::exit(2);
  }
  return {data->train.images.to(at::kFloat) / 255.0, {data->train.labels.begin(), data->train.labels.end()}};
}

std::vector<job> jobs_of(const gradient_encoder& encoder, const at::Tensor& images,
                         const std::vector<std::int64_t>& labels, const wanted& how) {
  const auto body = inversion_program(encoder, {.steps = how.steps,
                                                .learning_rate = how.rate,
                                                .kept = std::min(kept, how.steps),
                                                .by_hand_on_cpus = !how.by_autograd});
  const auto weights = encoder.drawn({.seed = 1, .purpose = first_method_purpose});
  const auto left = encoder.gradients(weights, images, at::tensor(labels));
  std::vector<job> jobs;
  for (std::int64_t i = 0; i < images.size(0); ++i) {
    auto in = std::make_shared<tensor_map>();
    for (std::size_t g = 0; g < left.size(); ++g)
      in->put(encoder.tensors()[g].name, left[g][i].contiguous());
    in->put("encoder", weights);
    const rng_key stream{.seed = 1, .purpose = first_method_purpose, .client = {static_cast<std::uint32_t>(i)}};
    jobs.push_back({.id = {{static_cast<std::uint64_t>(i)}, 0, 0},
                    .request = program_job{.body = body, .in = in, .stream = stream}});
  }
  return jobs;
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// PSNR of the last iterate in decibels: 10 log10(1 / mean squared error).
double psnr(const at::Tensor& made, const at::Tensor& image) {
  const auto error = (made.to(at::kDouble) / 255.0 - image.to(at::kDouble)).square().mean().item<double>();
  return -10.0 * std::log10(std::max(error, 1e-12));
}

} // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  CLI::App program("Measures the reconstruction of images from gradients");
  wanted how;
  program.add_option("--images", how.images)->check(CLI::Range(1L, 1000L));
  program.add_option("--width", how.width)->check(CLI::Range(1L, 1000L));
  program.add_option("--steps", how.steps)->check(CLI::Range(1L, 10'000L));
  program.add_option("--rate", how.rate);
  program.add_flag("--autograd", how.by_autograd);
  CLI11_PARSE(program, argc, argv);

  const auto [images, labels] = photographs(how.images);
  const gradient_encoder encoder({3, 32, 32}, classes);
  const auto jobs = jobs_of(encoder, images, labels, how);
  const auto device = make_executor("cpu");
  const double cpu_began = bench::cpu_seconds();
  outcomes made;
  for (std::size_t first = 0; first < jobs.size(); first += static_cast<std::size_t>(how.width))
    for (auto& outcome : device->run(
             std::span(jobs).subspan(first, std::min(static_cast<std::size_t>(how.width), jobs.size() - first))))
      made.push_back(std::move(outcome));
  const double seconds = bench::cpu_seconds() - cpu_began;

  run_digest digest;
  std::int64_t right = 0, failed = 0;
  std::vector<double> falls, decibels;
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (const auto* reason = std::get_if<std::string>(&made[i])) {
      fmt::print(stderr, "bench_reconstructions: {}\n", *reason);
      return 1;
    }
    const auto& out = *std::get<program_output>(std::get<work_output>(made[i])).out;
    digest.add(digest_of(out));
    right += out.at("label").item<std::int64_t>() == labels[i];
    const auto &objective = out.at("objective"), &iterates = out.at("images");
    if (objective[1].item<double>() < 0.0) {
      ++failed;
      continue;
    }
    falls.push_back(objective[1].item<double>() / objective[0].item<double>());
    decibels.push_back(psnr(iterates[iterates.size(0) - 1], images[static_cast<std::int64_t>(i)]));
  }
  if (falls.empty()) {
    fmt::print(stderr, "bench_reconstructions: all {} reconstructions failed\n", failed);
    return 1;
  }
  fmt::print("{{\"images\": {}, \"labels_right\": {}, \"failed\": {}, \"objective_fall_median\": {:.3g}, "
             "\"psnr_median\": {:.1f}, \"cpu_seconds\": {:.2f}, \"digest\": \"{}\"}}\n",
             made.size(), right, failed, median_of(falls), median_of(decibels), seconds, hex_text(digest.value()));
}
