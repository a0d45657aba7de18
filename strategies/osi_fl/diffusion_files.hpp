/// diffusion_files: the files of a captioner, a text encoder and a latent diffusion model, which keys of OSI-FL name.
/// This is the interface of the optional part strategies/osi_fl/diffusion (CMake switch MNEME_DIFFUSION).
#pragma once
#include "runtime/method/strategy.hpp"
namespace mneme {

/// Shape of a condition: one vector, or the states of all tokens of a text.
struct condition_shape {
  std::int64_t tokens = 1, width = 512;
  [[nodiscard]] std::int64_t numbers() const noexcept { return tokens * width; }
};

/// Expected properties of the modules and texts of a run.
struct expected_parts {
  std::map<std::string, std::filesystem::path> texts{}; ///< Files of the texts, by key.
  condition_shape condition{};
  std::int64_t beams = 0;
};

struct diffusion_sampling {
  std::int64_t images = 0; ///< Number of images per condition; 0: none are generated.
  std::int64_t steps = 0;
  double guidance = 1.0;
};

/// Programs that run the modules. Axes: n rows of a job, E numbers of an embedding, Z images.
struct part_programs {
  program_ref class_means{}; ///< Returns "means" [classes, E] and "counts" [classes] int64.
  program_ref embeddings{};  ///< Returns "embeddings" [n, E].
  /// Reads "condition" [E] and returns "images" [Z, C, H, W] uint8. Null if diffusion_sampling::images is 0.
  program_ref images{};
  std::int64_t embedding_width = 0; ///< E
};

/// Files as written by tools/research/export/picture_parts.py.
class diffusion_files {
public:
  /// Declares the keys caption_encoder, caption_decoder, caption_words, text_encoder, text_tokens, text_merges,
  /// denoiser, picture_decoder and beams.
  void keys(key_table& table);
  /// True if any key of the captioner is set.
  [[nodiscard]] bool describes() const;
  /// Adds the files of all set keys to the method's needs.
  void add_to(method_needs& needs) const;

  /// Validates the keys, the vocabularies and the shapes of the modules, and returns all findings.
  /// @param generates also requires denoiser and decoder
  [[nodiscard]] diagnostics check(const method_setup& setup, const condition_shape& condition, bool generates) const;
  /// @pre check() has no findings
  [[nodiscard]] part_programs build(const method_setup& setup, const diffusion_sampling& sampling) const;

private:
  struct file_key {
    const char* name = "";
    std::filesystem::path file{};
    const char* meaning = "";
    bool module = true, of_diffusion = false;
  };
  [[nodiscard]] diagnostics check_keys(bool generates) const;

  std::vector<file_key> files_ = {
      {"caption_encoder", {}, "Module that encodes an image for the captioner (docs/picture_parts.md)."},
      {"caption_decoder", {}, "Module that predicts the next word of a caption."},
      {"caption_words", {}, "vocab.json of the captioner's tokenizer.", false},
      {"text_encoder", {}, "Module that encodes a caption: one vector (embed512), or the states of all tokens."},
      {"text_tokens", {}, "vocab.json of the text encoder's tokenizer.", false},
      {"text_merges", {}, "merges.txt of the text encoder's tokenizer.", false},
      {"denoiser", {}, "Module that predicts the noise in latents from a time and a text (sd77x768 only).", true, true},
      {"picture_decoder", {}, "Module that decodes latents into images (sd77x768 only).", true, true}};
  std::int64_t beams_ = 4;
};

/// Functions of strategies/osi_fl/diffusion.
struct diffusion_support {
  diagnostics (*check)(const method_setup&, const expected_parts&, bool generates) = nullptr;
  part_programs (*build)(const method_setup&, std::int64_t beams, const diffusion_sampling&) = nullptr;
};

/// Registers these functions: `const diffusion_registration line{{.check = ..., .build = ...}};`
struct diffusion_registration {
  explicit diffusion_registration(const diffusion_support& support) noexcept;
};

} // namespace mneme
