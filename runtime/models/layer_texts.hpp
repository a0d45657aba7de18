/// layer_texts: a net as texts of a scenario, a layer each, before any of it is built.
#pragma once
#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <vector>
namespace mneme {

/// One layer, or a residual block with layers of its own.
struct layer_text {
  std::size_t position = 0; ///< Where its text stands in the array, from 0.
  std::string text{};       ///< As it stands there.
  std::string name{};       ///< Before the names of its parameters in files: "0", "3.body.1", or what the text says.
  std::string kind{};       ///< "conv"; "residual"
  std::vector<std::string> words{};   ///< Those behind the kind.
  std::vector<layer_text> body{};     ///< residual
  std::vector<layer_text> shortcut{}; ///< residual: empty: what arrives.
  /// `model.layers[4] = "conv 32"`
  [[nodiscard]] std::string place() const;
};

/// "conv 32 3x3 pad 1", or "NAME: conv 32 3x3 pad 1"; "residual [", layers, "]" or "] shortcut [", layers, "]". Without
/// a name of its own a layer is called by its number among its neighbours, behind the block's name and "body." or
/// "shortcut.": as PyTorch calls those of torch.nn.Sequential. All that is wrong is said at once.
[[nodiscard]] tl::expected<std::vector<layer_text>, std::string> parsed_layers(const std::vector<std::string>& texts);

/// The words behind a layer's kind, taken one after the other; what is wrong with them is remembered.
class layer_words {
public:
  /// @param usage how the layer is written, for what is said of a wrong one
  layer_words(const layer_text& layer, std::string usage);

  /// The next word as a number in [low, high], or `otherwise` where no word is left; without `otherwise` it is needed.
  std::int64_t integer(const char* noun, std::int64_t low, std::int64_t high, std::int64_t otherwise = -1);
  double number(const char* noun, double low, double high, double otherwise = -1.0);
  /// The next word "3x3" or "3" as 3: windows are squares.
  std::int64_t square(const char* noun, std::int64_t high);
  /// True if the word is there, anywhere; it is taken.
  bool flag(const std::string& word);
  /// The number behind the word, which are both taken from wherever they are.
  std::int64_t named(const std::string& word, std::int64_t low, std::int64_t high, std::int64_t otherwise);
  /// What is wrong, once all words were taken; "" if nothing is.
  [[nodiscard]] std::string finish();

private:
  void refuse(const std::string& flaw);
  [[nodiscard]] bool whole(const std::string& word, std::int64_t low, std::int64_t high, std::int64_t& into);

  std::string place_, usage_, wrong_;
  std::vector<std::string> words_;
};

} // namespace mneme
