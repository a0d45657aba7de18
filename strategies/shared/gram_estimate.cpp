#include "strategies/shared/gram_estimate.hpp"
#include "runtime/check.hpp"
#include "runtime/triangle.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <algorithm>
#include <cmath>
namespace mneme {

void add_estimated_gram(at::Tensor& gram, const class_sums& of, client_count kappa, bool clamp_b) {
  const auto holders = of.counts.size(0);
  if (holders == 0)
    return;
  MNEME_CHECK(of.sums.size(0) == holders && of.clients >= holders, of.sums.sizes(), of.clients);
  const auto rows = of.counts.sum().item<double>(); // N
  const auto clients = static_cast<double>(kappa == client_count::total ? of.clients : holders);
  const auto counts = of.counts.unsqueeze(1); // [K', 1]
  const auto spread = clients > 1.0 ? (rows - 1.0) / (clients - 1.0) : 0.0;
  if (clamp_b && rows < clients) { // E1 with b = 0
    if (spread > 0.0)
      add_gram(gram, (of.sums * (spread / counts).sqrt()).contiguous());
    return;
  }
  const auto mean = of.sums.sum(0, true) / rows; // [1, M]
  add_gram(gram, (mean * std::sqrt(rows)).contiguous());
  if (holders > 1 && spread > 0.0)
    add_gram(gram, ((of.sums / counts - mean) * (counts * spread).sqrt()).contiguous());
}

} // namespace mneme
