#include "strategies/osi_fl/diffusion/captioner.hpp"
#include <ATen/ATen.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <fmt/format.h>
namespace mneme {
namespace {

/// Resizes images to [n, 3, side, side] and normalizes them with mean 0.5 and deviation 0.5, like ViT's image
/// processor.
at::Tensor as_shown(const at::Tensor& images, std::int64_t side) {
  auto shown = images;
  if (shown.size(2) != side || shown.size(3) != side)
    shown = at::_upsample_bilinear2d_aa(shown, {side, side}, false);
  return ((shown.expand({-1, 3, -1, -1}) - 0.5) / 0.5).contiguous();
}

/// Writes one decoder row: the number of words, the words padded with zeros, and the encoded image.
void put_row(at::Tensor row, const std::vector<std::int64_t>& beginning, std::int64_t length,
             const at::Tensor& encoded) {
  auto words = at::zeros({1 + length}, at::kFloat);
  auto* const values = words.mutable_data_ptr<float>();
  values[0] = static_cast<float>(beginning.size());
  for (std::size_t i = 0; i < beginning.size(); ++i)
    values[i + 1] = static_cast<float>(beginning[i]);
  row.narrow(0, 0, 1 + length).copy_(words);
  row.narrow(0, 1 + length, encoded.size(0)).copy_(encoded);
}

} // namespace

at::Tensor results_of(const loaded_module& module, const at::Tensor& rows) {
  const auto weights = module.weights->at(flat_weights).to(rows.device());
  return module.net->forward(weights.unsqueeze(0), rows.unsqueeze(0), {}, nullptr, nullptr).features.squeeze(0);
}

std::int64_t captioner::caption_length() const {
  return parts_.caption_decoder.input[2] - 1 - parts_.caption_encoder.net->feature_width();
}

std::int64_t captioner::input_bytes() const {
  const auto [channels, height, width] = parts_.caption_encoder.input;
  const auto numbers = channels * height * width + parts_.beams * parts_.caption_decoder.input[2];
  return numbers * static_cast<std::int64_t>(sizeof(float));
}

std::string captioner::identity() const {
  return fmt::format("{}, {}, {}, {} beams", parts_.caption_encoder.net->identity(),
                     parts_.caption_decoder.net->identity(), parts_.text_encoder.net->identity(), parts_.beams);
}

/// Passes all running sequences of all unfinished images through the decoder in one batch.
std::vector<std::vector<std::int64_t>> captioner::captions(const at::Tensor& images) const {
  const auto shown = as_shown(images, parts_.caption_encoder.input[1]);
  const auto encoded = results_of(parts_.caption_encoder, shown); // [n, X]
  const auto length = caption_length(), words = parts_.caption_decoder.net->feature_width();
  std::vector<beam_search> searches(static_cast<std::size_t>(images.size(0)), beam_search({.beams = parts_.beams,
                                                                                           .length = length,
                                                                                           .words = words,
                                                                                           .start = parts_.words.end(),
                                                                                           .end = parts_.words.end()}));
  for (;;) {
    std::vector<std::int64_t> open;
    for (std::int64_t i = 0; i < images.size(0); ++i)
      if (!searches[static_cast<std::size_t>(i)].is_over())
        open.push_back(i);
    if (open.empty())
      break;
    auto rows = at::empty({std::ssize(open) * parts_.beams, 1, 1, 1 + length + encoded.size(1)}, encoded.options());
    std::int64_t row = 0;
    for (const auto image : open)
      for (const auto& beginning : searches[static_cast<std::size_t>(image)].beginnings())
        put_row(rows[row++].flatten(), beginning, length, encoded[image]);
    const auto logits = results_of(parts_.caption_decoder, rows).cpu();
    for (std::size_t i = 0; i < open.size(); ++i) { // image by image, because the bits of a row's sum may depend on the
                                                    // row's position
      const auto own = logits.narrow(0, static_cast<std::int64_t>(i) * parts_.beams, parts_.beams).clone();
      const auto likely = at::log_softmax(own, 1).contiguous();
      searches[static_cast<std::size_t>(open[i])].advance(
          {likely.const_data_ptr<float>(), static_cast<std::size_t>(likely.numel())});
    }
  }
  std::vector<std::vector<std::int64_t>> best_captions;
  for (const auto& search : searches)
    best_captions.push_back(search.best());
  return best_captions;
}

at::Tensor captioner::embeddings(const std::vector<std::string>& texts, const at::Device& device) const {
  const auto tokens = parts_.text_encoder.input[2];
  auto rows = at::empty({std::ssize(texts), 1, 1, tokens}, at::kFloat);
  auto* value = rows.mutable_data_ptr<float>();
  for (const auto& text : texts)
    for (const auto number : parts_.tokens.numbers(text, tokens))
      *value++ = static_cast<float>(number);
  return results_of(parts_.text_encoder, rows.to(device));
}

at::Tensor captioner::embeddings(const at::Tensor& images) const {
  std::vector<std::string> texts;
  for (const auto& caption : captions(images))
    texts.push_back(text(caption));
  return embeddings(texts, images.device());
}

} // namespace mneme
