/// tiny_parts: the net parts written by `tools/research/export/picture_parts.py tiny`, as method inputs.
#pragma once
#include "runtime/base/new_tensor.hpp"
#include "runtime/modules/load_module.hpp"
#include "strategies/osi_fl/diffusion/caption_embeddings.hpp"
#include "strategies/osi_fl/diffusion/guided_images.hpp"
#include "strategies/osi_fl/diffusion_files.hpp"
#include "tests/support/formula.hpp"
#include "tests/support/tensors.hpp"
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
namespace mneme::test {

inline std::filesystem::path parts_folder() { return MNEME_SOURCE_DIR "/scenarios/smoke/parts"; }

inline std::string text_of_part(const std::string& name) {
  std::ifstream file(parts_folder() / name, std::ios::binary);
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline loaded_module part_named(const std::string& name) {
  const auto net = load_module(parts_folder() / (name + ".pt2"), {.own_rows = true, .guards = {.sandbox = false}});
  REQUIRE(net);
  auto flat = new_tensor({(*net)->size()}, at::kFloat);
  (*net)->put_own_values(flat);
  return {.net = *net, .weights = weights_only(flat), .input = (*net)->input()};
}

inline text_tokens tiny_tokens() {
  return text_tokens::read(text_of_part("text_tokens.json"), text_of_part("text_merges.txt")).value();
}
inline caption_words tiny_words() { return caption_words::read(text_of_part("caption_words.json")).value(); }

/// @param text "text_encoder": one vector per text; "text_states": one state per token
inline std::shared_ptr<const captioner> tiny_captioner(const std::string& text, std::int64_t beams = 4) {
  return std::make_shared<const captioner>(captioner_parts{.caption_encoder = part_named("caption_encoder"),
                                                           .caption_decoder = part_named("caption_decoder"),
                                                           .words = tiny_words(),
                                                           .text_encoder = part_named(text),
                                                           .tokens = tiny_tokens(),
                                                           .beams = beams});
}

inline diffusion_parts tiny_diffusion() {
  return {.denoiser = part_named("denoiser"), .decoder = part_named("decoder")};
}

/// Reads tests/golden/picture_parts/NAME.json.
inline nlohmann::json parts_record(const std::string& name) {
  std::ifstream file(MNEME_SOURCE_DIR "/tests/golden/picture_parts/" + name + ".json");
  REQUIRE(file);
  return nlohmann::json::parse(file);
}

/// Numbers of a record.
inline at::Tensor recorded(const nlohmann::json& values) { return at::tensor(values.get<std::vector<float>>()); }

inline at::Tensor formula_tensor(const std::string& name, at::IntArrayRef shape) {
  return at::tensor(formula(name, c10::multiply_integers(shape))).view(shape);
}

/// Largest difference, relative to the largest expected number.
inline double worst_difference(const at::Tensor& found, const at::Tensor& expected) {
  const auto wanted = expected.flatten();
  REQUIRE(found.numel() == wanted.numel());
  return ((found.flatten() - wanted).abs().max() / wanted.abs().max()).item<double>();
}

} // namespace mneme::test
