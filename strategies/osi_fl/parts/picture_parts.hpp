/// picture_parts: keys for the files of a captioner, a text encoder and a latent diffusion model.
#pragma once
#include "strategies/osi_fl/parts/described_rows.hpp"
#include "strategies/osi_fl/parts/guided_pictures.hpp"
namespace mneme {

/// Shape of a condition: one vector, or the states of all tokens of a text.
struct condition_shape {
  std::int64_t tokens = 1, width = 512;
  [[nodiscard]] std::int64_t numbers() const noexcept { return tokens * width; }
};

/// Files as written by tools/research/export/picture_parts.py.
class picture_parts {
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
  [[nodiscard]] std::shared_ptr<const captioner> made_captioner(const method_setup& setup) const;
  [[nodiscard]] std::shared_ptr<const picture_diffusion> made_diffusion(const method_setup& setup, std::int64_t steps,
                                                                        double guidance) const;

private:
  struct file_key {
    const char* name = "";
    std::filesystem::path file{};
    const char* meaning = "";
    bool module = true, of_diffusion = false;
  };
  [[nodiscard]] diagnostics check_keys(bool generates) const;

  std::vector<file_key> files_ = {
      {"caption_encoder", {}, "Module that looks at a picture for the captioner (docs/picture_parts.md)."},
      {"caption_decoder", {}, "Module that tells the next word of a caption."},
      {"caption_words", {}, "vocab.json of the captioner's tokenizer.", false},
      {"text_encoder", {}, "Module that encodes a caption: one vector (embed512), or the states of all tokens."},
      {"text_tokens", {}, "vocab.json of the text encoder's tokenizer.", false},
      {"text_merges", {}, "merges.txt of the text encoder's tokenizer.", false},
      {"denoiser", {}, "sd77x768: module that finds the noise in latents, told a time and a text.", true, true},
      {"picture_decoder", {}, "sd77x768: module that makes pictures of latents.", true, true}};
  std::int64_t beams_ = 4;
};

} // namespace mneme
