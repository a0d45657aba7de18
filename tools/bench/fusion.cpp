// bench_fusion: client-rounds per CPU second over the width of a fused group, for two small nets, beside the loop that
// plain LibTorch code would run: one client after the other, autograd, its own operators.
//   build/release/bench_fusion [SECONDS_PER_CELL]
#include "runtime/executor.hpp"
#include "runtime/rng.hpp"
#include "runtime/scenario/keys.hpp"
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <numeric>
using namespace mneme;

namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct workload {
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

model_ref mlp(const workload& what) {
  for (const auto& entry : models())
    if (entry.name == "mlp") {
      const auto kind = entry.make();
      key_table keys;
      kind->keys(keys);
      *std::get<std::vector<std::int64_t>*>(keys.find("hidden")->target) = {what.hidden};
      return kind->build({1, 1, what.features}, 10).value();
    }
  std::abort(); // mlp is registered
}

/// One job per client: the same start, its own rows.
std::vector<job> round_of(const workload& what, std::int64_t clients) {
  const auto source = random_data(clients * what.rows, what.features);
  const auto net = mlp(what);
  const auto start = weights_only(initial_weights(*net, 1));
  std::vector<job> all;
  for (std::int64_t client = 0; client < clients; ++client) {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(what.rows));
    std::iota(rows.begin(), rows.end(), client * what.rows);
    all.push_back({.id = {{static_cast<std::uint64_t>(client)}, 0, 0},
                   .what = train_job{.net = net,
                                     .start = start,
                                     .samples = {source, std::make_shared<std::vector<std::int64_t>>(rows)},
                                     .options = {.batch_rows = what.batch_rows, .classes = {0, 10}},
                                     .stream = {.seed = 1, .client = {static_cast<std::uint32_t>(client)}}}});
  }
  return all;
}

/// Calls per CPU second, times `clients`: the median of at least eleven calls.
double rate_of(std::size_t clients, double seconds, const std::function<void()>& pass) {
  pass(); // buffers and caches
  std::vector<double> took;
  for (double total = 0.0; took.size() < 11 || total < seconds; total += took.back()) {
    const double began = cpu_seconds();
    pass();
    took.push_back(cpu_seconds() - began);
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

/// One client's local training as plain LibTorch code.
void train_bare(const train_job& what) {
  std::vector<at::Tensor> parameters;
  for (const auto& one : what.net->layout())
    parameters.push_back(what.start->at(flat_weights).narrow(0, one.offset, one.size).view(one.shape).clone());
  for (auto& one : parameters)
    one.requires_grad_(true);
  const auto& source = *what.samples.source;
  auto order = *what.samples.rows;
  rng_stream(key_for(what.stream, purpose::shuffle)).shuffle(std::span(order));
  std::vector<std::int64_t> labels;
  for (const auto row : order)
    labels.push_back(source.label(row));
  const auto all_rows = at::tensor(order, at::kLong), all_labels = at::tensor(labels, at::kLong);
  for (std::int64_t first = 0; first < all_rows.size(0); first += what.options.batch_rows) {
    const auto last = first + what.options.batch_rows;
    auto x = source.images.index_select(0, all_rows.slice(0, first, last)).to(at::kFloat).flatten(1);
    x.mul_(source.scale[0]).add_(source.shift[0]);
    const auto hidden = at::relu(at::linear(x, parameters[0], parameters[1]));
    const auto logits = at::linear(hidden, parameters[2], parameters[3]);
    at::cross_entropy_loss(logits, all_labels.slice(0, first, last)).backward();
    const at::NoGradGuard no_gradients;
    for (auto& one : parameters) {
      one.sub_(one.grad(), what.options.learning_rate);
      one.mutable_grad().reset();
    }
  }
}

} // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1.0;
  for (const workload what :
       {workload{"mlp 64-32-10, 50 rows", 64, 32, 50, 10}, workload{"mlp 784-100-10, 60 rows", 784, 100, 60, 10}}) {
    const auto clients = round_of(what, 256);
    std::printf("%s, batch %ld: width chosen %ld\n  width  client-rounds per CPU second  to width 1  to plain\n",
                what.name, static_cast<long>(what.batch_rows), static_cast<long>(chosen_width(clients[0].what, "cpu")));
    const auto some = std::span(clients).first(32); // the loop is slow
    const double bare = rate_of(some.size(), seconds, [&] {
      for (const auto& one : some)
        train_bare(std::get<train_job>(one.what));
    });
    std::printf("  plain %29.0f\n", bare);
    double alone = 0.0;
    for (const std::int64_t width : {1, 4, 16, 64, 256}) {
      const double rate = rate_at(width, clients, seconds);
      alone = width == 1 ? rate : alone;
      std::printf("  %5ld %29.0f  %10.2f  %8.1f\n", static_cast<long>(width), rate, rate / alone, rate / bare);
    }
  }
}
