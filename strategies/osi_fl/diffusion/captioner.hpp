/// captioner: what a picture shows, in words, and what a text encoder makes of them.
#pragma once
#include "runtime/method/strategy.hpp"
#include "strategies/osi_fl/diffusion/beam_search.hpp"
#include "strategies/osi_fl/diffusion/caption_words.hpp"
#include "strategies/osi_fl/diffusion/text_tokens.hpp"
namespace mneme {

// Axes: n pictures or texts, S side of the captioner's pictures, L words of a caption, V words of its vocabulary, X
// numbers that its encoder makes of a picture, T tokens of a text, E numbers of its embedding.

/// A module behind which there is no head, on rows of its own: [n, ..] -> [n, D], under the weights of its file.
[[nodiscard]] at::Tensor results_of(const loaded_module& module, const at::Tensor& rows);

/// Modules as tools/research/export/picture_parts.py writes them, and their vocabularies.
struct captioner_parts {
  loaded_module caption_encoder{}; ///< [n, 3, S, S] -> [n, X]
  loaded_module caption_decoder{}; ///< number of words, words [L], encoder's numbers [X] in a row -> logits [n, V]
  caption_words words{};
  loaded_module text_encoder{}; ///< tokens [T] in a row -> [n, E]
  text_tokens tokens{};
  std::int64_t beams = 4;
};

/// Rows are independent of each other to the last bit, as rows of modules are.
class captioner {
public:
  explicit captioner(captioner_parts parts) : parts_(std::move(parts)) {}

  [[nodiscard]] std::int64_t embedding_width() const { return parts_.text_encoder.net->feature_width(); } ///< E
  [[nodiscard]] std::int64_t caption_length() const;                                                      ///< L
  /// Bytes that one picture takes while it is looked at.
  [[nodiscard]] std::int64_t picture_bytes() const;
  [[nodiscard]] std::string identity() const;

  /// The likeliest caption of each, as numbers of words with start and end.
  /// @param pictures [n, 1 or 3, H, W] float32 in [0, 1], of any size: they are brought to the captioner's
  [[nodiscard]] std::vector<std::vector<std::int64_t>> captions(const at::Tensor& pictures) const;
  [[nodiscard]] std::string text(const std::vector<std::int64_t>& caption) const { return parts_.words.text(caption); }
  /// [n, E]
  [[nodiscard]] at::Tensor embeddings(const std::vector<std::string>& texts, const at::Device& device) const;
  /// What the captions of pictures become.
  [[nodiscard]] at::Tensor embeddings(const at::Tensor& pictures) const;

private:
  captioner_parts parts_;
};

} // namespace mneme
