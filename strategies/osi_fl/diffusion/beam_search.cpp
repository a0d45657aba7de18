#include "strategies/osi_fl/diffusion/beam_search.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
namespace mneme {
namespace {

constexpr float never = -1e9F; // score of an impossible choice

} // namespace

beam_search::beam_search(const beam_settings& settings)
    : settings_(settings), running_(static_cast<std::size_t>(settings.beams), {settings.start}),
      scores_(running_.size(), never) {
  MNEME_CHECK(settings.beams >= 1 && 2 * settings.beams <= settings.words && settings.length >= 2, settings.beams,
              settings.words, settings.length);
  scores_.front() = 0.0F; // all beams are equal at the start, so only one counts
}

/// Returns twice as many continuations as beams, so that enough remain if half of them end.
std::vector<beam_search::continuation>
beam_search::find_best_continuations(std::span<const float> log_probabilities) const {
  const auto continuations_max = static_cast<std::size_t>(2 * settings_.beams);
  std::vector<continuation> best;
  for (std::size_t beam = 0; beam < running_.size(); ++beam)
    for (std::int64_t word = 0; word < settings_.words; ++word) {
      const auto place = beam * static_cast<std::size_t>(settings_.words) + static_cast<std::size_t>(word);
      const float score = log_probabilities[place] + scores_[beam];
      if (best.size() == continuations_max && !(score > best.back().score))
        continue;
      const auto position =
          std::find_if(best.begin(), best.end(), [&](const auto& other) { return score > other.score; });
      best.insert(position, {score, beam, word});
      if (best.size() > continuations_max)
        best.pop_back();
    }
  return best;
}

void beam_search::finish(const continuation& path, std::vector<std::int64_t> words) {
  const auto score = path.score / static_cast<float>(words.size() - 1);
  const auto position =
      std::find_if(finished_.begin(), finished_.end(), [&](const auto& other) { return score > other.score; });
  finished_.insert(position, {score, std::move(words)});
  if (finished_.size() > running_.size())
    finished_.pop_back();
}

void beam_search::advance(std::span<const float> log_probabilities) {
  const auto best = find_best_continuations(log_probabilities);
  std::vector<std::vector<std::int64_t>> running;
  std::vector<float> scores;
  const bool last = std::ssize(running_.front()) + 1 >= settings_.length;
  for (std::size_t place = 0; place < best.size(); ++place) {
    const auto& next = best[place];
    auto words = running_[next.beam];
    words.push_back(next.word);
    if (last || next.word == settings_.end) {
      if (place < running_.size()) // an end token counts only among the best continuations
        finish(next, std::move(words));
    } else if (running.size() < running_.size()) {
      running.push_back(std::move(words));
      scores.push_back(next.score);
    }
  }
  over_ = last;
  if (last)
    return;
  running_ = std::move(running);
  scores_ = std::move(scores);
  const auto best_possible = scores_.front() / static_cast<float>(running_.front().size() - 1);
  over_ = finished_.size() == running_.size() && !(best_possible > finished_.back().score);
}

} // namespace mneme
