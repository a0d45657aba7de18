// Beam search by hand: scores, ends, ties.
#include "strategies/osi_fl/diffusion/beam_search.hpp"
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <map>
using namespace mneme;

namespace {

using words = std::vector<std::int64_t>;

/// Log-probabilities of the next word after each prefix, from a table; missing entries are 1e-6.
words best_of(const beam_settings& settings, const std::map<words, std::map<std::int64_t, double>>& table) {
  beam_search search(settings);
  while (!search.is_over()) {
    std::vector<float> likely(static_cast<std::size_t>(settings.beams * settings.words), std::log(1e-6F));
    for (std::size_t beam = 0; beam < search.beginnings().size(); ++beam)
      if (const auto found = table.find(search.beginnings()[beam]); found != table.end())
        for (const auto& [word, probability] : found->second)
          likely[beam * static_cast<std::size_t>(settings.words) + static_cast<std::size_t>(word)] =
              std::log(static_cast<float>(probability));
    search.advance(likely);
  }
  return search.best();
}

constexpr std::int64_t end = 9;
const beam_settings two_beams{.beams = 2, .length = 4, .words = 10, .start = end, .end = end};

} // namespace

TEST_CASE("a prefix with a lower score can win with two beams but not with one") {
  const std::map<words, std::map<std::int64_t, double>> table{
      {{end}, {{1, 0.6}, {2, 0.4}}}, {{end, 1}, {{3, 0.5}, {4, 0.5}}}, {{end, 2}, {{5, 0.95}}},
      {{end, 1, 3}, {{end, 1.0}}},   {{end, 1, 4}, {{end, 1.0}}},      {{end, 2, 5}, {{end, 1.0}}},
  };
  CHECK(best_of(two_beams, table) == words{end, 2, 5, end}); // 0.38 against 0.3
  auto greedy = two_beams;
  greedy.beams = 1;
  CHECK(best_of(greedy, table) == words{end, 1, 3, end}); // ties go to the lower word
}

TEST_CASE("scores are means over the words after the start, so that a longer caption can win") {
  // exp(mean): 0.5 after one word; sqrt(0.45 * 0.9) = 0.636 after two.
  const std::map<words, std::map<std::int64_t, double>> table{{{end}, {{end, 0.5}, {1, 0.45}}},
                                                              {{end, 1}, {{end, 0.9}}}};
  CHECK(best_of(two_beams, table) == words{end, 1, end});
  // 0.2 * 0.9: 0.424
  const std::map<words, std::map<std::int64_t, double>> worse{{{end}, {{end, 0.5}, {1, 0.2}}},
                                                              {{end, 1}, {{end, 0.9}}}};
  CHECK(best_of(two_beams, worse) == words{end, end});
}

TEST_CASE("a search ends at the maximum length without an end token") {
  const std::map<words, std::map<std::int64_t, double>> table{
      {{end}, {{1, 0.9}}}, {{end, 1}, {{1, 0.9}}}, {{end, 1, 1}, {{1, 0.9}}}};
  CHECK(best_of(two_beams, table) == words{end, 1, 1, 1});
}

TEST_CASE("with equal scores the earlier prefix and the lower word come first") {
  beam_search search({.beams = 3, .length = 5, .words = 6, .start = 5, .end = 5});
  const std::vector<float> even(18, std::log(1.0F / 6.0F));
  search.advance(even);
  CHECK(search.beginnings() == std::vector<words>{{5, 0}, {5, 1}, {5, 2}});
  search.advance(even);
  CHECK(search.beginnings() == std::vector<words>{{5, 0, 0}, {5, 0, 1}, {5, 0, 2}});
}
