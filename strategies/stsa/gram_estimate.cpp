#include "strategies/stsa/gram_estimate.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/triangle.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <cmath>
namespace mneme {

void add_estimated_gram(at::Tensor& gram, const class_sums& from, client_count kappa, bool clamp_b) {
  const auto holders = from.counts.size(0);
  if (holders == 0)
    return;
  MNEME_CHECK(from.sums.size(0) == holders && from.clients >= holders, from.sums.sizes(), from.clients);
  const auto rows = from.counts.sum().item<double>(); // N
  const auto clients = static_cast<double>(kappa == client_count::total ? from.clients : holders);
  const auto counts = from.counts.unsqueeze(1); // [K', 1]
  const auto spread = clients > 1.0 ? (rows - 1.0) / (clients - 1.0) : 0.0;
  if (clamp_b && rows < clients) { // the official formula with b = 0
    if (spread > 0.0)
      add_gram(gram, (from.sums * (spread / counts).sqrt()).contiguous());
    return;
  }
  const auto mean = from.sums.sum(0, true) / rows; // [1, M]
  add_gram(gram, (mean * std::sqrt(rows)).contiguous());
  if (holders > 1 && spread > 0.0)
    add_gram(gram, ((from.sums / counts - mean) * (counts * spread).sqrt()).contiguous());
}

void held_sums::add(const at::Tensor& sums, const at::Tensor& counts) {
  const auto values = sums.cpu(), numbers = counts.cpu();
  classes_.resize(static_cast<std::size_t>(numbers.size(1)));
  for (std::int64_t c = 0; c < numbers.size(1); ++c) {
    auto& kept = classes_[static_cast<std::size_t>(c)];
    const auto of_class = values.select(1, c), count = numbers.select(1, c); // [P, M], [P]
    const auto with = count.nonzero().view({-1}), without = count.eq(0).nonzero().view({-1});
    if (with.numel() > 0) {
      kept.sums.push_back(of_class.index_select(0, with));
      kept.counts.push_back(count.index_select(0, with));
    }
    // The server cannot separate noise from rows, so C of eq. 8 sums all uploads.
    const auto noise = of_class.index_select(0, without);
    if (noise.any().item<bool>())
      kept.without_rows = kept.without_rows.defined() ? kept.without_rows + noise.sum(0) : noise.sum(0);
  }
}

void held_sums::add_to(at::Tensor& into, std::int64_t first) const {
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    auto row = into.select(0, first + static_cast<std::int64_t>(c));
    for (const auto& part : classes_[c].sums)
      row.add_(part.sum(0));
    if (classes_[c].without_rows.defined())
      row.add_(classes_[c].without_rows);
  }
}

tensors_ref held_sums::take(const at::Tensor& gram, std::int64_t clients, const estimate_rules& rules) {
  std::vector<at::Tensor> sums, counts;
  auto holders = at::zeros({std::ssize(classes_)}, at::kLong);
  for (std::size_t c = 0; c < classes_.size(); ++c)
    for (std::size_t i = 0; i < classes_[c].sums.size(); ++i) {
      holders.mutable_data_ptr<std::int64_t>()[c] += classes_[c].counts[i].size(0);
      sums.push_back(classes_[c].sums[i]);
      counts.push_back(classes_[c].counts[i]);
    }
  classes_.clear();
  auto asked = std::make_shared<tensor_map>();
  asked->put("gram", gram);
  asked->put("holders", holders);
  asked->put("clients", at::scalar_tensor(clients, at::kLong));
  asked->put("nonempty", at::scalar_tensor(rules.kappa == client_count::nonempty, at::kBool));
  asked->put("clamp_b", at::scalar_tensor(rules.clamp_b, at::kBool));
  if (!sums.empty()) {
    asked->put("sums", at::cat(sums));
    asked->put("counts", at::cat(counts));
  }
  return asked;
}

tensor_map estimate_grams(const tensor_map& in) {
  auto gram = in.at("gram").clone();
  const auto holders = in.at("holders").cpu(); // [C] number of rows of "sums" for each class; classes follow in order
  const auto kappa = in.at("nonempty").item<bool>() ? client_count::nonempty : client_count::total;
  std::int64_t first = 0;
  for (std::int64_t c = 0; c < holders.size(0); ++c) {
    const auto n = holders.const_data_ptr<std::int64_t>()[c];
    if (n > 0)
      add_estimated_gram(gram,
                         {.sums = in.at("sums").narrow(0, first, n),
                          .counts = in.at("counts").narrow(0, first, n),
                          .clients = in.at("clients").item<std::int64_t>()},
                         kappa, in.at("clamp_b").item<bool>());
    first += n;
  }
  tensor_map out;
  out.put("gram", gram);
  return out;
}

} // namespace mneme
