/// beam_search: finds the most likely word sequence by beam search.
#pragma once
#include <cstdint>
#include <span>
#include <vector>
namespace mneme {

/// Options of the search.
struct beam_settings {
  std::int64_t beams = 4;
  std::int64_t length = 16; ///< Maximum length of a sequence, including the start token.
  std::int64_t words = 0;   ///< V
  std::int64_t start = 0, end = 0;
};

/// Beam search for one sequence, with the defaults of GenerationMixin in the library transformers. The score of a
/// finished sequence is the mean log-probability of its words after the start token, including the end token. The
/// search ends at the maximum length. It also ends when one sequence per beam is finished and no running sequence
/// scores better than the worst finished one. Equal scores are ordered by beam, then by word number.
class beam_search {
public:
  /// @pre 1 <= beams, 2 * beams <= words, 2 <= length
  explicit beam_search(const beam_settings& settings);

  [[nodiscard]] bool is_over() const noexcept { return over_; }
  /// The running sequences, one per beam, all of equal length.
  [[nodiscard]] const std::vector<std::vector<std::int64_t>>& beginnings() const noexcept { return running_; }
  /// Extends the sequences by one word. @param log_probabilities [beams, V] of the next word of each sequence @pre not
  /// is_over()
  void advance(std::span<const float> log_probabilities);
  /// The best sequence, with start and end token. @pre is_over()
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
  [[nodiscard]] std::vector<continuation> find_best_continuations(std::span<const float> log_probabilities) const;
  void finish(const continuation& path, std::vector<std::int64_t> words);

  beam_settings settings_;
  std::vector<std::vector<std::int64_t>> running_{};
  std::vector<float> scores_{};      // of running_: sums of log-probabilities
  std::vector<sequence> finished_{}; // best first; at most one per beam
  bool over_ = false;
};

} // namespace mneme
