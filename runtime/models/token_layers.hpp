/// token_layers: adds layers of transformers and LSTMs to a net.
/// Tokens in a net have the shape {tokens, 1, channels}.
#pragma once
#include "runtime/models/low_rank.hpp"
#include "runtime/models/network_builder.hpp"
namespace mneme {

/// Resizes the input images by bilinear interpolation. @param height, width in pixels @pre it is the first layer
void add_resize(network_builder& to, std::int64_t height, std::int64_t width);
/// Adds a class token, a token per patch and position embeddings, with timm's names. @param patch side in pixels
void add_patch_embedding(network_builder& to, std::int64_t patch, std::int64_t channels, bool biased = true);
/// Adds layer normalization of every token.
void add_tokens_norm(network_builder& to, const std::string& name, double epsilon = 1e-6);
/// Initial values of a matrix: N(0, 0.02^2), U(-b, b) with b = 1 / sqrt(fan in), or zeros. Biases are zeros.
enum class draw_kind : std::uint8_t { normal, uniform, zeros };
/// Options of add_tokens_linear().
struct tokens_linear_options {
  std::int64_t out = 0;
  activation after = activation::none;
  double scale = 1.0; ///< Factor of the outputs, before the activation.
  draw_kind drawn = draw_kind::normal;
};
/// Adds y = scale (x W^T + b) for every token, then the activation.
void add_tokens_linear(network_builder& to, const std::string& name, const tokens_linear_options& layer);
/// Adds three linear layers of the same input: queries, keys and values of add_attention(), concatenated.
void add_attention_inputs(network_builder& to, const std::array<std::string, 3>& names, std::int64_t channels);
/// Adds attention over the concatenated queries, keys and values; only the first `queries` tokens get a result.
/// @param padding token of the net's inputs that is masked; -1: none
/// @param causal true: a token attends to itself and the tokens before it only; requires padding = -1
void add_attention(network_builder& to, std::int64_t heads, std::int64_t queries, std::int64_t padding = -1,
                   bool causal = false);
/// A low-rank adapter of a linear layer: name of the part, and the layer's output channels that it changes.
struct low_rank_part {
  std::string name{};
  std::int64_t first = 0, count = 0;
};
/// Adds scale B A dropout(x) of each part to the last value, which a linear layer has computed from the value x. Each
/// part has trained parameters NAME.lora_A.weight and NAME.lora_B.weight, as in peft, even if the net freezes others.
/// All parts share the mask of the dropout. Without parts the net is not changed.
void add_low_rank(network_builder& to, network_place x, const low_rank_options& options,
                  const std::vector<low_rank_part>& parts);
/// Like add_tokens_linear(). If the options contain `target`, also adds a low-rank adapter of the same name.
void add_tokens_linear(network_builder& to, const std::string& name, const tokens_linear_options& layer,
                       const low_rank_options& options, const char* target);
/// Returns the parts of the concatenated matrices of queries, keys and values: PREFIXquery and so on, or PREFIXqkv.
[[nodiscard]] std::vector<low_rank_part> attention_parts(const low_rank_options& options, const std::string& prefix,
                                                         std::int64_t channels);
void add_gelu(network_builder& to);
/// Adds CLIP's approximation of GELU.
void add_quick_gelu(network_builder& to);
/// Selects the first or the last token of every row.
void add_first_token(network_builder& to);
void add_last_token(network_builder& to);
/// Converts rows of tokens to vectors. @pre it is the first layer, and inputs have one channel and height 1
void add_token_embedding(network_builder& to, const std::string& name, std::int64_t vocabulary, std::int64_t channels);
/// Options of add_text_embedding().
struct text_embedding_options {
  std::int64_t vocabulary = 0, channels = 0;
  std::int64_t positions = 0; ///< Number of rows of the position table, at least the number of tokens of a row.
  std::int64_t types = 2;
  std::int64_t padding = -1; ///< Token whose vector is not trained; -1: none.
};
/// Like add_token_embedding(), but also adds a vector per position and one per text type. Names are as in the library
/// transformers.
void add_text_embedding(network_builder& to, const std::string& prefix, const text_embedding_options& layer);
/// Adds layer `number` of an LSTM with PyTorch's names. Its output is h for all tokens.
void add_lstm(network_builder& to, const std::string& name, std::int64_t number, std::int64_t hidden);

} // namespace mneme
