/// token_layers: layers of transformers and LSTMs that are added to a net. A place of tokens has the shape
/// {tokens, 1, channels}.
#pragma once
#include "runtime/models/network_builder.hpp"
namespace mneme {

/// The images of the input in another size.
void add_resize(network_builder& to, std::int64_t height, std::int64_t width);
/// A token per patch of the image, behind a class token, and what each position adds; under timm's names.
void add_patch_embedding(network_builder& to, std::int64_t patch, std::int64_t channels);
void add_tokens_norm(network_builder& to, const std::string& name, double epsilon = 1e-6);
/// How a matrix is drawn: N(0, 0.02^2), U(-b, b) with b = 1 / sqrt(fan in), or all zeros. Biases are zeros.
enum class draw_kind : std::uint8_t { normal, uniform, zeros };
struct tokens_linear_options {
  std::int64_t out = 0;
  activation after = activation::none;
  double scale = 1.0; ///< Factor on the outputs, before the activation.
  draw_kind drawn = draw_kind::normal;
};
void add_tokens_linear(network_builder& to, const std::string& name, const tokens_linear_options& layer);
/// Three linear layers that read the same, their results side by side, as add_attention() reads them.
void add_attention_inputs(network_builder& to, const std::array<std::string, 3>& names, std::int64_t channels);
/// Attention over queries, keys and values side by side; results of the first `queries` tokens only.
/// @param padding token of the net's inputs that is not looked at; -1: none
void add_attention(network_builder& to, std::int64_t heads, std::int64_t queries, std::int64_t padding = -1);
void add_gelu(network_builder& to);
void add_first_token(network_builder& to);
void add_last_token(network_builder& to);
/// Rows of tokens as vectors. @pre it is the first layer, and inputs have one channel and one line
void add_token_embedding(network_builder& to, const std::string& name, std::int64_t vocabulary, std::int64_t channels);
struct text_embedding_options {
  std::int64_t vocabulary = 0, channels = 0;
  std::int64_t positions = 0; ///< Rows of their table; not fewer than a row has tokens.
  std::int64_t types = 2;
  std::int64_t padding = -1; ///< Token whose vector is not trained; -1: none.
};
/// The same with a vector per position and one for the kind of text, under the names of the library transformers.
void add_text_embedding(network_builder& to, const std::string& prefix, const text_embedding_options& layer);
/// Layer `number` of an LSTM under PyTorch's names; h of all tokens.
void add_lstm(network_builder& to, const std::string& name, std::int64_t number, std::int64_t hidden);

} // namespace mneme
