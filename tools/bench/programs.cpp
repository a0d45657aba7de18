// bench_programs: runs small programs, one after another or stacked, without actors. Prints one JSON object.
//   bench_programs generator|inversion [--width K] [--seconds S]
#include "runtime/method/gradients.hpp"
#include "runtime/models/function.hpp"
#include "tools/bench/bench_seconds.hpp"
#include "tools/bench/run_stacked.hpp"
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <functional>
#include <sys/resource.h>
using namespace mneme;

namespace {

// Axes: K stacked programs, N images of a generator's step, Z code size, D pixels, G weights of a generator, P weights
// of the net.

constexpr std::int64_t codes = 26, hidden = 32, pixels = 64, classes = 10, images = 16, inverted = 4, steps = 20;
constexpr std::int64_t programs = 64; // the same for every width
using stack_of = std::function<at::Tensor(const char*)>;

at::Tensor drawn(at::IntArrayRef sizes, std::uint64_t seed, double scale) {
  auto made = at::empty(sizes, at::kFloat);
  rng_stream draw({.seed = seed, .purpose = first_method_purpose});
  for (std::int64_t i = 0; i < made.numel(); ++i)
    made.mutable_data_ptr<float>()[i] = static_cast<float>(scale * draw.normal());
  return made;
}

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& labels) {
  return -stacked_log_softmax(logits).gather(-1, labels.unsqueeze(-1)).sum();
}

/// Program with `steps` steps of gradient descent on one tensor per call, stacked over programs.
class descent : public program {
public:
  descent(model_ref net, const char* moved) : net_(std::move(net)), moved_(moved) {}
  [[nodiscard]] std::string name() const override { return moved_; }
  [[nodiscard]] std::string identity() const override { return net_->identity(); }
  [[nodiscard]] std::vector<declared_tensor> outcome(const program_job& job) const override {
    return {{.name = moved_, .shape = job.in->at(moved_).sizes().vec()}};
  }
  [[nodiscard]] std::vector<slice_result> run(std::span<const program_call> calls) const override {
    const stack_of stack = [&](const char* tensor) {
      std::vector<at::Tensor> values;
      for (const auto& call : calls)
        values.push_back(call.in.at(tensor));
      return at::stack(values);
    };
    auto values = stack(moved_);
    prepared from{.weights = stack(flat_weights), .other = stack("other"), .labels = stack("labels")};
    for (std::int64_t step = 0; step < steps; ++step)
      values = values - 0.01 * gradient(from, leaf_of(values));
    std::vector<slice_result> made;
    for (std::int64_t k = 0; k < values.size(0); ++k)
      made.push_back({.tensors = {{moved_, values[k]}}});
    return made;
  }

protected:
  struct prepared {
    at::Tensor weights{}, other{}, labels{};
  };
  [[nodiscard]] virtual at::Tensor gradient(const prepared& from, const at::Tensor& values) const = 0;
  [[nodiscard]] const model& net() const { return *net_; }

private:
  model_ref net_;
  const char* moved_;
};

/// Trains the weights of a conditional generator on the cross-entropy of a frozen net: codes [K, N, Z] through two
/// layers to images [K, N, D].
class generator_training final : public descent {
public:
  static constexpr std::int64_t size = hidden * (codes + 1) + pixels * (hidden + 1);
  explicit generator_training(model_ref net) : descent(std::move(net), "generator") {}

protected:
  [[nodiscard]] at::Tensor gradient(const prepared& from, const at::Tensor& values) const override {
    const auto K = values.size(0);
    const auto parts = at::split_with_sizes(values, {hidden * codes, hidden, pixels * hidden, pixels}, 1);
    const auto h = at::relu(stacked_product(from.other, parts[0].view({K, hidden, codes})) + parts[1].unsqueeze(1));
    const auto flat = stacked_product(h, parts[2].view({K, pixels, hidden})) + parts[3].unsqueeze(1);
    const auto made = by_element(flat, at::tanh).view({K, images, 1, 1, pixels});
    const auto seen = net().differentiable(from.weights, made, {0, classes}, {});
    return gradients_of(cross_entropy(seen.logits, from.labels) / static_cast<double>(images), {values})[0];
  }
};

/// Reconstructs four images [K, 4, D] by minimizing |gradient of the net's loss - received gradient|^2, with second
/// derivatives (Zhu, Liu and Han 2019, "Deep Leakage from Gradients", eq. 4).
class inversion final : public descent {
public:
  explicit inversion(model_ref net) : descent(std::move(net), "image") {}

protected:
  [[nodiscard]] at::Tensor gradient(const prepared& from, const at::Tensor& values) const override {
    const auto weights = leaf_of(from.weights);
    const auto seen = net().differentiable(weights, values.view({-1, inverted, 1, 1, pixels}), {0, classes}, {});
    const auto sent = gradients_of(cross_entropy(seen.logits, from.labels), {weights}, graph_use::differentiable)[0];
    return gradients_of((sent - from.other).square().sum(), {values})[0];
  }
};

model_ref small_net() {
  for (const auto& entry : models())
    if (entry.name == "mlp") {
      const auto kind = entry.make();
      key_table keys;
      kind->keys(keys);
      *std::get<std::vector<std::int64_t>*>(keys.find("hidden")->target) = {hidden};
      return kind->build({1, 1, pixels}, classes).value();
    }
  std::abort(); // impossible, because mlp is registered
}

std::vector<job> jobs_of(const std::string& workload) {
  const auto net = small_net();
  const bool generates = workload == "generator";
  const auto body = generates ? program_ref(std::make_shared<generator_training>(net))
                              : program_ref(std::make_shared<inversion>(net));
  const auto rows = generates ? images : inverted;
  std::vector<job> jobs;
  for (std::uint64_t k = 0; k < programs; ++k) {
    auto in = std::make_shared<tensor_map>();
    in->put(flat_weights, initial_weights(*net, k));
    in->put("labels", (at::arange(rows, at::kLong) + static_cast<std::int64_t>(k)) % classes);
    if (generates) {
      in->put("generator", drawn({generator_training::size}, 100 + k, 0.1));
      in->put("other", drawn({images, codes}, 200 + k, 1.0));
    } else {
      in->put("image", drawn({inverted, pixels}, 100 + k, 0.1));
      in->put("other", drawn({net->size()}, 200 + k, 0.1));
    }
    jobs.push_back({.id = {{k}, 0, 0}, .request = program_job{.body = body, .in = in}});
  }
  return jobs;
}

std::int64_t peak_bytes() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return 1024 * static_cast<std::int64_t>(used.ru_maxrss);
}

} // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  CLI::App program("Measures small programs, one after another or stacked");
  std::string workload;
  std::int64_t width = 1;
  double seconds = 1.0;
  program.add_option("workload", workload)->required()->check(CLI::IsMember({"generator", "inversion"}));
  program.add_option("--width", width)->check(CLI::Range(1L, programs));
  program.add_option("--seconds", seconds);
  CLI11_PARSE(program, argc, argv);

  const auto jobs = jobs_of(workload);
  const auto device = make_executor("cpu");
  const auto digest = bench::run_stacked(*device, jobs, static_cast<std::size_t>(width)); // warm up buffers and caches
  const double cpu_began = bench::cpu_seconds(), wall_began = bench::wall_seconds();
  std::int64_t rounds = 0;
  do
    (void)bench::run_stacked(*device, jobs, static_cast<std::size_t>(width));
  while (++rounds, bench::cpu_seconds() - cpu_began < seconds);
  fmt::print("{{\"steps\": {}, \"cpu_seconds\": {:.6f}, \"wall_seconds\": {:.6f}, \"peak_rss_bytes\": {}, "
             "\"digest\": \"{}\"}}\n",
             rounds * programs * steps, bench::cpu_seconds() - cpu_began, bench::wall_seconds() - wall_began,
             peak_bytes(), hex_text(digest));
}
