#include "runtime/base/diagnostic.hpp"
#include <algorithm>
#include <numeric>
namespace mneme {
namespace {

/// Number of edits (insert, delete, replace, swap of neighbors) that turn `a` into `b`.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  return cost[a.size()][b.size()];
}

} // namespace

std::string closest_match(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t length_max = 100; // longer words are not misspelled names, and the cost grows with their length
  if (word.size() > length_max)
    return {};
  std::string best;
  std::size_t least = word.size() / 3 + 2; // accept errors in up to a third of the word
  for (const auto& candidate : candidates)
    if (auto edits = distance(word, candidate); edits < least) {
      least = edits;
      best = candidate;
    }
  return best;
}

} // namespace mneme
