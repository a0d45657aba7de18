// Statistics of STSA's official program, exact and estimated, over two tasks, recorded by
// tools/research/official/stsa.py.
#include "runtime/base/triangle.hpp"
#include "runtime/training/ridge.hpp"
#include "strategies/stsa/gram_estimate.hpp"
#include "tests/support/official_steps.hpp"
#include <ATen/ATen.h>
#include <algorithm>
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t classes = 4, features = 5, width = 7, dummies = 3, rows = 20;
constexpr double ridge = 10.0;
const std::vector<std::vector<std::int64_t>> held{
    {0, 3, 4, 9, 10, 11, 13}, {1, 2, 5, 6}, {7, 8, 12, 14, 15, 16, 17, 18, 19}};

at::Tensor by_name(const std::string& name, std::int64_t count, std::int64_t columns) {
  return at::tensor(formula(name, count * columns)).view({count, columns}).to(at::kDouble);
}

std::int64_t label_of(std::int64_t task, std::int64_t row) { return 2 * task + (row * row + row / 3) % 2; }

/// H = ReLU(X W_R) of a task.
at::Tensor projected(std::int64_t task) {
  return at::mm(by_name("features." + std::to_string(task), rows, features), by_name("W_R", features, width)).relu();
}

/// Sums of a class over the dummies of all clients, each of which is a range of its client's rows.
class_sums sums_of_class(const at::Tensor& h, std::int64_t task, std::int64_t label) {
  std::vector<at::Tensor> sums;
  std::vector<double> counts;
  for (const auto& own : held)
    for (std::int64_t part = 0; part < dummies; ++part) {
      auto sum = at::zeros({width}, at::kDouble);
      double count = 0.0;
      const auto each = std::ssize(own) / dummies;
      for (std::int64_t i = 0; i < std::ssize(own); ++i)
        if (const auto row = own[static_cast<std::size_t>(i)];
            std::min(i / each, dummies - 1) == part && label_of(task, row) == label) {
          sum += h[row];
          count += 1.0;
        }
      if (count == 0.0)
        continue;
      sums.push_back(sum);
      counts.push_back(count);
    }
  return {.sums = at::stack(sums), .counts = at::tensor(counts, at::kDouble), .clients = std::ssize(held) * dummies};
}

} // namespace

TEST_CASE("Gram matrices, class sums and read-outs of two tasks equal STSA's official program", "[official][stsa]") {
  official_steps both("stsa/statistics");
  for (const std::string kind : {"exact", "estimated"}) {
    auto gram = at::zeros({triangle_size(width)}, at::kDouble), sums = at::zeros({classes, width}, at::kDouble);
    for (std::int64_t task = 0; task < 2; ++task) {
      CAPTURE(kind, task);
      const auto h = projected(task);
      for (std::int64_t row = 0; row < rows; ++row)
        sums[label_of(task, row)] += h[row];
      if (kind == "exact")
        add_gram(gram, h);
      else
        for (std::int64_t label = 2 * task; label < 2 * task + 2; ++label)
          add_estimated_gram(gram, sums_of_class(h, task, label), client_count::total, /*clamp_b=*/true);
      const auto& expected = both[kind.c_str()][static_cast<std::size_t>(task)];
      const auto where = fmt::format("{}, task {} ", kind, task + 1);
      both.values(where + "Gram matrix", expected.at("gram"), square(gram, width));
      both.values(where + "class sums", expected.at("sums"), sums.t());
      both.values(where + "read-out", expected.at("readout"), solve_ridge(gram, sums, ridge).to(at::kFloat));
    }
  }
}
