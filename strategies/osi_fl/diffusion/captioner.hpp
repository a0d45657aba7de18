/// captioner: captions images and encodes the captions with a text encoder.
#pragma once
#include "runtime/method/strategy.hpp"
#include "strategies/osi_fl/diffusion/beam_search.hpp"
#include "strategies/osi_fl/diffusion/caption_words.hpp"
#include "strategies/osi_fl/diffusion/text_tokens.hpp"
namespace mneme {

// Axes: n images or texts, S side of the captioner's images, L words of a caption, V words of its vocabulary, X numbers
// of its encoder's output, T tokens of a text, E numbers of an embedding.

/// Evaluates a module without a head, with the weights of its file: rows [n, ..] -> [n, D].
[[nodiscard]] at::Tensor results_of(const loaded_module& module, const at::Tensor& rows);

/// Modules as written by tools/research/export/picture_parts.py, and their vocabularies.
struct captioner_parts {
  loaded_module caption_encoder{}; ///< [n, 3, S, S] -> [n, X]
  loaded_module caption_decoder{}; ///< row: word count, words [L], encoded image [X] -> logits [n, V]
  caption_words words{};
  loaded_module text_encoder{}; ///< row: tokens [T] -> [n, E]
  text_tokens tokens{};
  std::int64_t beams = 4;
};

/// The output of a row does not depend on other rows, to the last bit.
class captioner {
public:
  explicit captioner(captioner_parts parts) : parts_(std::move(parts)) {}

  [[nodiscard]] std::int64_t embedding_width() const { return parts_.text_encoder.net->feature_width(); } ///< E
  [[nodiscard]] std::int64_t caption_length() const;                                                      ///< L
  /// Memory for captioning one image, in bytes.
  [[nodiscard]] std::int64_t input_bytes() const;
  [[nodiscard]] std::string identity() const;

  /// Returns the most likely caption of each image, as word numbers with start and end token.
  /// @param images [n, 1 or 3, H, W] float32 in [0, 1], of any size; they are resized
  [[nodiscard]] std::vector<std::vector<std::int64_t>> captions(const at::Tensor& images) const;
  [[nodiscard]] std::string text(const std::vector<std::int64_t>& caption) const { return parts_.words.text(caption); }
  /// Encodes texts: [n, E].
  [[nodiscard]] at::Tensor embeddings(const std::vector<std::string>& texts, const at::Device& device) const;
  /// Captions images and encodes the captions: [n, E].
  [[nodiscard]] at::Tensor embeddings(const at::Tensor& images) const;

private:
  captioner_parts parts_;
};

} // namespace mneme
