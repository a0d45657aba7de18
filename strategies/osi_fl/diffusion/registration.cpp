#include "strategies/osi_fl/diffusion/caption_embeddings.hpp"
#include "strategies/osi_fl/diffusion/guided_images.hpp"
#include "strategies/osi_fl/diffusion_files.hpp"
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme {
namespace {

/// Validates the loaded modules and texts, and collects the findings.
class part_check {
public:
  part_check(const method_setup& setup, const expected_parts& expected)
      : setup_(setup), texts_(expected.texts), condition_(expected.condition), beams_(expected.beams) {}

  diagnostics findings(bool generates) {
    check_data();
    check_captioner();
    check_text();
    if (generates)
      check_diffusion();
    return std::move(errors_);
  }

private:
  void add_of_file(const char* key, const std::string& text) { add(key, texts_.at(key).string() + ": " + text); }
  void add(const std::string& key, std::string text) { errors_.push_back({"strategy." + key, std::move(text)}); }
  [[nodiscard]] const std::array<std::int64_t, 3>& input(const char* key) const { return setup_.modules.at(key).input; }
  [[nodiscard]] std::int64_t width(const char* key) const { return setup_.modules.at(key).net->feature_width(); }

  void check_data() {
    const auto [channels, height, width] = setup_.shape;
    if ((channels != 1 && channels != 3) || height < 2 || width < 2)
      add("caption_encoder", fmt::format("a captioner reads images, but the data are [{}]; expected 1 or 3 channels",
                                         fmt::join(setup_.shape, ", ")));
  }

  void check_captioner() {
    const auto& images = input("caption_encoder");
    if (images[0] != 3 || images[1] != images[2])
      add("caption_encoder",
          fmt::format("the module takes rows [{}]; expected square images [3, S, S]", fmt::join(images, ", ")));
    const auto numbers = width("caption_encoder"), length = input("caption_decoder")[2] - 1 - numbers;
    if (length < 2)
      add("caption_decoder",
          fmt::format("the module takes {} numbers for a row; expected 1 + words of a caption (16) + "
                      "the {} that caption_encoder returns: was it exported with another one?",
                      input("caption_decoder")[2], numbers));
    const auto words = caption_words::read(setup_.texts.at("caption_words"));
    if (!words)
      return add_of_file("caption_words", words.error());
    const auto scored = width("caption_decoder");
    if (words->size() > scored || words->end() >= scored)
      add("caption_words",
          fmt::format(
              "the vocabulary has {} words, but caption_decoder scores {}; expected the tokenizer of that module",
              words->size(), scored));
    else if (words->size() < scored)
      add("caption_words",
          fmt::format("the vocabulary has {} words, but caption_decoder scores {}; expected a word for each score",
                      words->size(), scored));
    if (2 * beams_ > scored)
      add("beams", fmt::format("beams = {}; expected at most half of the {} words", beams_, scored));
  }

  void check_text() {
    const auto numbers = width("text_encoder"), tokens = input("text_encoder")[2];
    if (numbers != condition_.numbers())
      add("text_encoder", fmt::format("the module returns {} numbers for a text; the condition has {} x {} = {}: "
                                      "text_encoder.pt of the export is for \"embed512\", text_states.pt for "
                                      "\"sd77x768\"",
                                      numbers, condition_.tokens, condition_.width, condition_.numbers()));
    if (tokens < 2 || (condition_.tokens > 1 && tokens != condition_.tokens))
      add("text_encoder",
          fmt::format("the module takes {} tokens; the condition has states of {}", tokens, condition_.tokens));
    if (const auto read = text_tokens::read(setup_.texts.at("text_tokens"), setup_.texts.at("text_merges")); !read)
      add_of_file(read.error().starts_with("line") ? "text_merges" : "text_tokens", read.error());
  }

  void check_diffusion() {
    const auto& latents = input("picture_decoder");
    const auto count = latents[0] * latents[1] * latents[2];
    if (input("denoiser")[2] != count + 1 + condition_.numbers())
      add("denoiser",
          fmt::format("the module takes {} numbers for a row; expected the [{}] latents of picture_decoder, "
                      "a time and {} x {} of the condition, {}",
                      input("denoiser")[2], fmt::join(latents, ", "), condition_.tokens, condition_.width,
                      count + 1 + condition_.numbers()));
    if (width("denoiser") != count)
      add("denoiser", fmt::format("the module returns {} numbers for a row; expected the noise of its {} latents",
                                  width("denoiser"), count));
    const auto pixels = width("picture_decoder");
    const auto side = std::lround(std::sqrt(static_cast<double>(pixels) / 3.0));
    if (pixels != 3 * side * side)
      add("picture_decoder",
          fmt::format("the module returns {} numbers for a row; expected a square image of 3 channels", pixels));
  }

  const method_setup& setup_;
  std::map<std::string, std::filesystem::path> texts_;
  condition_shape condition_;
  std::int64_t beams_;
  diagnostics errors_;
};

diagnostics check_parts(const method_setup& setup, const expected_parts& expected, bool generates) {
  return part_check(setup, expected).findings(generates);
}

std::shared_ptr<const captioner> make_captioner(const method_setup& setup, std::int64_t beams) {
  const auto text = [&](const char* key) -> const std::string& { return setup.texts.at(key); };
  return std::make_shared<const captioner>(
      captioner_parts{.caption_encoder = setup.modules.at("caption_encoder"),
                      .caption_decoder = setup.modules.at("caption_decoder"),
                      .words = caption_words::read(text("caption_words")).value(),
                      .text_encoder = setup.modules.at("text_encoder"),
                      .tokens = text_tokens::read(text("text_tokens"), text("text_merges")).value(),
                      .beams = beams});
}

part_programs build_parts(const method_setup& setup, std::int64_t beams, const diffusion_sampling& sampling) {
  const auto describing = make_captioner(setup, beams);
  const pixel_normalization pixels{.scale = setup.scale, .shift = setup.shift};
  part_programs made{.class_means = encode_class_means(describing, pixels, setup.classes),
                     .embeddings = caption_embeddings(describing, pixels),
                     .embedding_width = describing->embedding_width()};
  if (sampling.images > 0) {
    auto diffusion = std::make_shared<const image_diffusion>(
        diffusion_parts{.denoiser = setup.modules.at("denoiser"), .decoder = setup.modules.at("picture_decoder")},
        sampling.steps, sampling.guidance);
    made.images = guided_images(std::move(diffusion), describing, setup.shape, sampling.images);
  }
  return made;
}

const diffusion_registration diffusion_line{{.check = check_parts, .build = build_parts}};

} // namespace
} // namespace mneme
