/// beam_search: the likeliest sequence of words, kept track of over several beginnings at once.
#pragma once
#include <cstdint>
#include <span>
#include <vector>
namespace mneme {

struct beam_settings {
  std::int64_t beams = 4;
  std::int64_t length = 16; ///< Most words of a sequence, the start among them.
  std::int64_t words = 0;   ///< V
  std::int64_t start = 0, end = 0;
};

/// One sequence, found as transformers' GenerationMixin does by default: a finished sequence's score is the mean
/// log-probability of its words behind the start, the end among them; a search is over when as many are finished as
/// there are beams and the best beginning scores no better than any of them, or at the length. Equal scores: the
/// earlier beginning, then the lower word, comes first.
class beam_search {
public:
  /// @pre 1 <= beams, 2 * beams <= words, 2 <= length
  explicit beam_search(const beam_settings& with);

  [[nodiscard]] bool is_over() const noexcept { return over_; }
  /// Beginnings of equal length, as many as there are beams.
  [[nodiscard]] const std::vector<std::vector<std::int64_t>>& beginnings() const noexcept { return running_; }
  /// Goes on by one word. @param log_probabilities [beams, V] of the next word behind each beginning @pre not over
  void advance(std::span<const float> log_probabilities);
  /// The best sequence with start and end. @pre over
  [[nodiscard]] const std::vector<std::int64_t>& best() const { return finished_.front().words; }

private:
  struct continuation {
    float score = 0.0F;
    std::size_t beam = 0;
    std::int64_t word = 0;
  };
  struct sequence {
    float score = 0.0F;
    std::vector<std::int64_t> words{};
  };
  [[nodiscard]] std::vector<continuation> best_continuations(std::span<const float> log_probabilities) const;
  void finish(const continuation& with, std::vector<std::int64_t> words);

  beam_settings with_;
  std::vector<std::vector<std::int64_t>> running_{};
  std::vector<float> scores_{};      // of running_: sums of log-probabilities
  std::vector<sequence> finished_{}; // the best first, at most as many as there are beams
  bool over_ = false;
};

} // namespace mneme
