/// layer_specs: parses the list of layers in a scenario's model.layers, before the net is built.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>
namespace mneme {

/// One layer, or a residual block with nested layers.
struct layer_spec {
  std::size_t position = 0; ///< Index of the layer's text in model.layers, from 0.
  std::string text{};       ///< The text itself.
  std::string name{};       ///< Prefix of its parameters' names in files: "0", "3.body.1", or the name in the text.
  std::string kind{};       ///< Such as "conv" or "residual".
  std::vector<std::string> words{};   ///< The words after the kind.
  std::vector<layer_spec> body{};     ///< Layers of a residual block.
  std::vector<layer_spec> shortcut{}; ///< Layers of its shortcut; empty: identity.
  /// Location for error messages, such as `model.layers[4] = "conv 32"`.
  [[nodiscard]] std::string place() const;
};

/// Parses "conv 32 3x3 pad 1" or "NAME: conv 32 3x3 pad 1", and blocks: "residual [", layers, "]" or "] shortcut [",
/// layers, "]". A layer without a name is named by its index in its list. In a block, the block's name and "body." or
/// "shortcut." precede the index, as in torch.nn.Sequential. If another layer is given that name, "_" follows it. Fails
/// with one text that lists all errors.
[[nodiscard]] tl::expected<std::vector<layer_spec>, std::string> parse_layers(const std::vector<std::string>& texts);

/// Reads the words after a layer's kind, one by one, and keeps the first error.
class layer_spec_reader {
public:
  /// @param usage the layer's syntax, for error messages
  layer_spec_reader(const layer_spec& layer, std::string usage);

  /// Consumes the next word as a number in [low, high]. If no word is left, returns `otherwise`. A negative `otherwise`
  /// makes the word mandatory.
  std::int64_t integer(const char* noun, std::int64_t low, std::int64_t high, std::int64_t otherwise = -1);
  double number(const char* noun, double low, double high, double otherwise = -1.0);
  /// Consumes the next word, "3x3" or "3", as the side of a square window.
  std::int64_t square(const char* noun, std::int64_t high);
  /// Consumes `word` at any position. Returns true if it was present.
  bool flag(const std::string& word);
  /// Consumes `word` at any position and the number after it. Returns the number, or `otherwise` without the word.
  std::int64_t named(const std::string& word, std::int64_t low, std::int64_t high, std::int64_t otherwise);
  double named_number(const std::string& word, double low, double high, double otherwise);
  /// Returns the first error, or an error if words are left; "" if there is none.
  [[nodiscard]] std::string finish();

private:
  void refuse(const std::string& flaw);
  [[nodiscard]] std::optional<std::string> take_after(const std::string& word);

  std::string place_, usage_, errors_;
  std::vector<std::string> words_;
};

} // namespace mneme
