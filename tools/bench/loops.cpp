// bench_loops: measures one training loop, or the limits of the machine. Prints one JSON object.
//   bench_loops limits [--seconds S]
//   bench_loops bare-mlp|bare-cnn|stacked-cnn|stacked-mlp-autograd|stacked-mlp-by-hand|stacked-mlp-tuned
//               --shape 64 --hidden 32 --clients 2000 --rows 50 --cohort 256 --batch 10 [--width K] [--seconds S]
//               [--device D]
#include "tools/bench/bench_seconds.hpp"
#include "tools/bench/loops/limits.hpp"
#include "tools/bench/loops/training_loop.hpp"
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <string>
#include <sys/resource.h>
using namespace mneme::bench;

namespace {

using maker = std::function<std::unique_ptr<training_loop>(const workload&)>;
const std::map<std::string, maker> makers = {{"bare-mlp", bare_mlp},
                                             {"bare-cnn", bare_cnn},
                                             {"stacked-cnn", stacked_cnn},
                                             {"stacked-mlp-autograd", stacked_mlp_autograd},
                                             {"stacked-mlp-by-hand", stacked_mlp_by_hand},
                                             {"stacked-mlp-tuned", stacked_mlp_tuned}};

std::int64_t peak_bytes() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return 1024 * static_cast<std::int64_t>(used.ru_maxrss);
}

/// Returns the reason why the loop cannot run this workload; "" if it can.
std::string workload_error(const std::string& name, const workload& load) {
  const bool images = name.ends_with("cnn");
  if (images ? load.shape.size() != 3 || std::min(load.shape[1], load.shape[2]) < 6 : load.shape.empty())
    return images ? "--shape: expected channels,height,width with at least 6 pixels per side" : "--shape is missing";
  if (!images && load.hidden < 1)
    return "--hidden: expected at least 1";
  if (load.batch < 1 || load.rows < 1 || load.rows % load.batch != 0)
    return "--rows: expected a multiple of --batch";
  if (load.device != "cpu" && !name.starts_with("bare"))
    return "--device: expected only with bare loops";
  if (load.width < 1 || load.cohort < 1 || load.cohort % load.width != 0 || load.cohort > load.clients)
    return "--cohort: expected a multiple of --width, at most --clients";
  return "";
}

int measure_limits(double seconds) {
  const auto found = measure_machine_limits(seconds);
  fmt::print("{{\"flops_per_second\": {:.6g}, \"bytes_per_second\": {:.6g}}}\n", found.flops_per_second,
             found.bytes_per_second);
  return 0;
}

int measure_loop(const maker& make, const workload& load, double seconds) {
  const auto loop = make(load);
  loop->round(0, cohort_of(load, 0)); // warm-up, whose result is compared with that of other loops
  const double norm = loop->weights_norm();
  const double cpu_began = cpu_seconds(), wall_began = wall_seconds();
  std::int64_t rounds = 0;
  do
    loop->round(rounds + 1, cohort_of(load, rounds + 1));
  while (++rounds, cpu_seconds() - cpu_began < seconds);
  const double last_norm = loop->weights_norm(); // this waits for the device
  fmt::print("{{\"client_rounds\": {}, \"cpu_seconds\": {:.6f}, \"wall_seconds\": {:.6f}, \"peak_rss_bytes\": {}, "
             "\"first_norm\": {:.9g}, \"last_norm\": {:.9g}}}\n",
             rounds * load.cohort, cpu_seconds() - cpu_began, wall_seconds() - wall_began, peak_bytes(), norm,
             last_norm);
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  CLI::App program("Measures a loop of plain LibTorch, or the machine's limits");
  std::string name;
  workload load;
  double seconds = 1.0;
  program.add_option("name", name)->required();
  program.add_option("--shape", load.shape)->delimiter(',');
  program.add_option("--hidden", load.hidden);
  program.add_option("--clients", load.clients);
  program.add_option("--rows", load.rows);
  program.add_option("--cohort", load.cohort);
  program.add_option("--batch", load.batch);
  program.add_option("--width", load.width);
  program.add_option("--learning-rate", load.learning_rate);
  program.add_option("--device", load.device);
  program.add_option("--seconds", seconds);
  CLI11_PARSE(program, argc, argv);
  if (name == "limits")
    return measure_limits(seconds);
  const auto found = makers.find(name);
  const auto error = found == makers.end() ? "unknown loop" : workload_error(name, load);
  if (!error.empty()) {
    fmt::print(stderr, "bench_loops: {}: {}\n", name, error);
    return 2;
  }
  at::globalContext().setAllowTF32CuDNN(false); // full float32, as in mneme's kernels
  return measure_loop(found->second, load, seconds);
}
