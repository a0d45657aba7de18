/// picture_parts: the files that keys of a method name for a captioner, a text encoder and latent diffusion.
#pragma once
#include "strategies/osi_fl/parts/described_rows.hpp"
#include "strategies/osi_fl/parts/guided_pictures.hpp"
namespace mneme {

/// What a class is described by: one vector, or states of all tokens of a text.
struct condition_shape {
  std::int64_t tokens = 1, width = 512;
  [[nodiscard]] std::int64_t numbers() const noexcept { return tokens * width; }
};

/// Files as tools/research/export/picture_parts.py writes them.
class picture_parts {
public:
  /// caption_encoder, caption_decoder, caption_words, text_encoder, text_tokens, text_merges, denoiser,
  /// picture_decoder, beams.
  void keys(key_table& table);
  /// Some key of the captioner is given.
  [[nodiscard]] bool describes() const;
  void add_to(method_needs& needs) const;

  /// What is wrong with the keys, the vocabularies and the modules' shapes, all at once.
  /// @param generates denoiser and decoder are read, too
  [[nodiscard]] diagnostics check(const method_setup& setup, const condition_shape& condition, bool generates) const;
  /// @pre nothing is wrong
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
