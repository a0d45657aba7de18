// bench_fusion: client-rounds per CPU second by the width of a fused group, for two small nets. The rates are compared
// with sequential LibTorch code: one client after the other, autograd, standard operators.
//   build/release/bench_fusion [SECONDS_PER_CELL]
#include "runtime/base/rng.hpp"
#include "runtime/options/keys.hpp"
#include "runtime/training/executor.hpp"
#include "tools/bench/bench_seconds.hpp"
#include "tools/bench/loops/training_loop.hpp"
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
using namespace mneme;

namespace {

struct net_workload {
  const char* name;
  std::int64_t features, hidden, rows, batch_rows;
};

std::shared_ptr<const dataset> random_data(std::int64_t rows, std::int64_t features) {
  auto made = std::make_shared<dataset>();
  made->images = at::empty({rows, 1, 1, features}, at::kByte);
  rng_stream draw({.seed = 1});
  for (std::int64_t i = 0; i < rows * features; ++i)
    made->images.mutable_data_ptr<std::uint8_t>()[i] = static_cast<std::uint8_t>(draw.below(256));
  made->labels.resize(static_cast<std::size_t>(rows));
  for (auto& label : made->labels)
    label = static_cast<std::int32_t>(draw.below(10));
  made->transforms.resize(1);
  made->scale = {1.0F / 127.5F};
  made->shift = {-1.0F};
  return made;
}

model_ref mlp(const net_workload& workload) {
  for (const auto& entry : models())
    if (entry.name == "mlp") {
      const auto kind = entry.make();
      key_table keys;
      kind->keys(keys);
      *std::get<std::vector<std::int64_t>*>(keys.find("hidden")->target) = {workload.hidden};
      return kind->build({1, 1, workload.features}, 10).value();
    }
  std::abort(); // impossible, because mlp is registered
}

/// One job per client with its own rows and the same initial weights.
std::vector<job> round_of(const net_workload& workload, std::int64_t clients) {
  const auto source = random_data(clients * workload.rows, workload.features);
  const auto net = mlp(workload);
  const auto start = weights_only(initial_weights(*net, 1));
  std::vector<job> jobs;
  for (std::int64_t client = 0; client < clients; ++client) {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(workload.rows));
    std::iota(rows.begin(), rows.end(), client * workload.rows);
    jobs.push_back({.id = {{static_cast<std::uint64_t>(client)}, 0, 0},
                    .request = train_job{.net = net,
                                         .start = start,
                                         .samples = {source, std::make_shared<std::vector<std::int64_t>>(rows)},
                                         .options = {.batch_rows = workload.batch_rows, .classes = {0, 10}},
                                         .stream = {.seed = 1, .client = {static_cast<std::uint32_t>(client)}}}});
  }
  return jobs;
}

/// Returns `clients` per CPU second of a call: the median of at least eleven calls.
double rate_of(std::size_t clients, double seconds, const std::function<void()>& pass) {
  pass(); // warm up buffers and caches
  std::vector<double> took;
  for (double total = 0.0; took.size() < 11 || total < seconds; total += took.back()) {
    const double began = bench::cpu_seconds();
    pass();
    took.push_back(bench::cpu_seconds() - began);
  }
  std::nth_element(took.begin(), took.begin() + std::ssize(took) / 2, took.end());
  return static_cast<double>(clients) / took[took.size() / 2];
}

double rate_at(std::int64_t width, std::span<const job> clients, double seconds) {
  const auto runs = make_executor("cpu");
  return rate_of(clients.size(), seconds, [&] {
    for (std::size_t first = 0; first < clients.size(); first += static_cast<std::size_t>(width))
      for (const auto& outcome : runs->run(clients.subspan(first, static_cast<std::size_t>(width))))
        if (std::holds_alternative<std::string>(outcome))
          std::abort();
  });
}

/// Rate of sequential LibTorch code; bench_loops compares more such loops.
double bare_rate(const net_workload& workload, double seconds) {
  constexpr std::int64_t clients = 32; // a small number, because the loop is slow
  const bench::workload work{.shape = {workload.features},
                             .hidden = workload.hidden,
                             .clients = clients,
                             .rows = workload.rows,
                             .cohort = clients,
                             .batch = workload.batch_rows};
  const auto loop = bench::bare_mlp(work);
  const auto cohort = bench::cohort_of(work, 0);
  return rate_of(cohort.size(), seconds, [&] { loop->round(0, cohort); });
}

} // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1.0;
  for (const net_workload workload : {net_workload{"mlp 64-32-10, 50 rows", 64, 32, 50, 10},
                                      net_workload{"mlp 784-100-10, 60 rows", 784, 100, 60, 10}}) {
    const auto clients = round_of(workload, 256);
    std::printf("%s, batch %ld: width chosen %ld\n  width  client-rounds per CPU second  to width 1  to plain\n",
                workload.name, static_cast<long>(workload.batch_rows),
                static_cast<long>(choose_width(clients[0].request, "cpu")));
    const double bare = bare_rate(workload, seconds);
    std::printf("  plain %29.0f\n", bare);
    double alone = 0.0;
    for (const std::int64_t width : {1, 4, 16, 64, 256}) {
      const double rate = rate_at(width, clients, seconds);
      alone = width == 1 ? rate : alone;
      std::printf("  %5ld %29.0f  %10.2f  %8.1f\n", static_cast<long>(width), rate, rate / alone, rate / bare);
    }
  }
}
