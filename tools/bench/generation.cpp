// bench_generation: generates images with OSI-FL's generator in the sizes of Fashion-MNIST, stacked over the conditions
// of clients and classes. Prints one JSON object: images per CPU second, and the digest of the images.
//   bench_generation [--conditions K] [--images Z] [--candidates c] [--width W] [--steps S] [--guidance w]
//                    [--seconds T]
// Weights are random, because the cost of a net does not depend on them.
#include "strategies/osi_fl/latent_generation.hpp"
#include "strategies/osi_fl/latent_training.hpp"
#include "tools/bench/bench_seconds.hpp"
#include "tools/bench/run_stacked.hpp"
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>
#include <fmt/format.h>
using namespace mneme;

namespace {

struct wanted {
  std::int64_t conditions = 60, width = 60;
  double seconds = 1.0;
  generation_settings sampling{};
};

/// Makes one job for each client and class. Jobs share the nets but have their own conditions and noise.
std::vector<job> jobs_of(const wanted& how) {
  const latent_shape shape{.image = {1, 28, 28}, .kinds = 10};
  const auto body = latent_generation(shape, how.sampling);
  tensor_map nets;
  nets.put("denoiser", latent_denoiser(shape).parameters().initial({.seed = 1}));
  nets.put("encoder", image_encoder(shape).parameters().initial({.seed = 2}));
  nets.put("basis", at::eye(shape.latent(), shape.pixels()));
  nets.put("centre", at::zeros({shape.pixels()}));
  nets.put("spread", at::ones({shape.latent()}));
  nets.put("scale", at::full({1}, 1.0 / 255.0));
  nets.put("shift", at::zeros({1}));
  std::vector<job> jobs;
  for (std::uint64_t k = 0; k < static_cast<std::uint64_t>(how.conditions); ++k) {
    auto in = std::make_shared<tensor_map>(nets);
    auto condition = at::empty({shape.embedding}, at::kFloat);
    rng_stream draw({.seed = 3, .index = k});
    for (std::int64_t i = 0; i < shape.embedding; ++i)
      condition.mutable_data_ptr<float>()[i] = static_cast<float>(0.04 * draw.normal());
    in->put("condition", condition);
    const rng_key stream{.seed = 4, .purpose = first_method_purpose, .index = k};
    jobs.push_back({.id = {{k}, 0, 0}, .request = program_job{.body = body, .in = in, .stream = stream}});
  }
  return jobs;
}

} // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  CLI::App program("Measures the generation of images, job after job or stacked");
  wanted how;
  program.add_option("--conditions", how.conditions)->check(CLI::Range(1L, 10'000L));
  program.add_option("--images", how.sampling.images)->check(CLI::Range(1L, 10'000L));
  program.add_option("--width", how.width)->check(CLI::Range(1L, 10'000L));
  program.add_option("--candidates", how.sampling.candidates)->check(CLI::Range(1L, 1'000L));
  program.add_option("--steps", how.sampling.steps)->check(CLI::Range(2L, diffusion_times));
  program.add_option("--guidance", how.sampling.guidance);
  program.add_option("--seconds", how.seconds);
  CLI11_PARSE(program, argc, argv);

  const auto jobs = jobs_of(how);
  const auto device = make_executor("cpu");
  const auto digest = bench::run_stacked(*device, jobs, static_cast<std::size_t>(how.width)); // warms up caches
  const double began = bench::cpu_seconds();
  std::int64_t rounds = 0;
  do
    (void)bench::run_stacked(*device, jobs, static_cast<std::size_t>(how.width));
  while (++rounds, bench::cpu_seconds() - began < how.seconds);
  const double seconds = bench::cpu_seconds() - began;
  fmt::print("{{\"images\": {}, \"cpu_seconds\": {:.3f}, \"images_per_cpu_second\": {:.1f}, \"digest\": \"{}\"}}\n",
             rounds * how.conditions * how.sampling.images, seconds,
             static_cast<double>(rounds * how.conditions * how.sampling.images) / seconds, hex_text(digest));
}
