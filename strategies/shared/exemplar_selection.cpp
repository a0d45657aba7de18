#include "strategies/shared/exemplar_selection.hpp"
#include "runtime/base/check.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <numeric>
namespace mneme {
namespace {

std::vector<std::int64_t> nearest(const at::Tensor& rows, const at::Tensor& mean, std::int64_t count) {
  const auto distances = (rows - mean).square().sum(1);
  const auto order = std::get<1>(distances.sort(/*stable=*/true, 0, false)).contiguous();
  const auto* const first = order.const_data_ptr<std::int64_t>();
  return {first, first + count};
}

enum class chosen_rows : std::uint8_t { are_out, come_again, add_nothing };
constexpr std::int64_t wins_max = 1000; // maximum number of selections with chosen_rows::add_nothing

/// Herding. The next row minimizes the distance between the class mean and the mean of the selection, (sum + f) / (k +
/// 1). With v = (k + 1) mean - sum this distance is |v - f| / (k + 1), so one product with v ranks all rows.
std::vector<std::int64_t> herded(const at::Tensor& rows, const at::Tensor& mean, std::int64_t count, chosen_rows rule) {
  std::vector<std::int64_t> chosen;
  const auto lengths = rows.square().sum(1); // [n]
  auto sum = at::zeros_like(mean);
  auto taken = at::zeros({rows.size(0)}, at::kBool);
  for (std::int64_t k = 0; std::ssize(chosen) < count && (k < wins_max || rule != chosen_rows::add_nothing); ++k) {
    const auto target = mean * static_cast<double>(k + 1) - sum;
    auto distances = lengths - 2.0 * at::mv(rows, target);
    if (rule == chosen_rows::are_out)
      distances.masked_fill_(taken, std::numeric_limits<double>::infinity());
    const auto next = distances.argmin().item<std::int64_t>();
    sum += rows[next];
    if (rule != chosen_rows::add_nothing || !taken[next].item<bool>())
      chosen.push_back(next);
    taken[next].fill_(true);
  }
  return chosen;
}

} // namespace

std::vector<std::int64_t> choose_exemplars(const at::Tensor& features, std::int64_t count, exemplar_choice how,
                                           bool as_they_are) {
  MNEME_CHECK(features.size(0) > 0, features.size(0));
  const auto raw = features.cpu().to(at::kDouble);
  const auto rows = as_they_are ? raw : raw / raw.norm(2, {1}, true).clamp_min(1e-12);
  const auto mean = rows.mean(0);
  const auto places = std::min(count, rows.size(0));
  switch (how) {
  case exemplar_choice::greedy:
    return herded(rows, mean, places, chosen_rows::are_out);
  case exemplar_choice::rank:
    return nearest(rows, mean, places);
  case exemplar_choice::duplicates:
    return herded(rows, mean, count, chosen_rows::come_again);
  case exemplar_choice::repeats:
    return herded(rows, mean, places, chosen_rows::add_nothing);
  case exemplar_choice::first:
    break;
  }
  std::vector<std::int64_t> chosen(static_cast<std::size_t>(places));
  std::iota(chosen.begin(), chosen.end(), 0);
  return chosen;
}

} // namespace mneme
