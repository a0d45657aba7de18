#include "runtime/models/layer_specs.hpp"
#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <set>
#include <sstream>
namespace mneme {
namespace {

/// Parses a number in [low, high] into `value`. Returns false for other texts.
template <class Number>
bool parse_bounded(const std::string& text, Number low, Number high, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && low <= value && value <= high;
}

constexpr std::size_t nesting_max = 16;

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; in >> word;)
    words.push_back(word);
  return words;
}

/// True for "NAME:" where NAME has only letters, digits, dots, underscores and hyphens.
bool is_name(const std::string& word) {
  const auto is_plain = [](char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '_' || c == '.' ||
           c == '-';
  };
  return word.size() > 1 && word.back() == ':' && std::all_of(word.begin(), word.end() - 1, is_plain);
}

class layer_parser {
public:
  explicit layer_parser(const std::vector<std::string>& texts) : texts_(texts) {
    for (const auto& text : texts)
      if (const auto words = words_of(text); !words.empty() && is_name(words.front()))
        given_names_.insert(words.front().substr(0, words.front().size() - 1));
  }

  tl::expected<std::vector<layer_spec>, std::string> parse() {
    if (texts_.empty())
      return tl::unexpected(
          std::string("model.layers = []: expected layers, the last of them \"linear classes\", as in "
                      "[\"flatten\", \"linear 64\", \"relu\", \"linear classes\"]"));
    auto layers = list("", 0);
    while (at_ < texts_.size()) // a closing bracket without an opening one may be left
      add_error(at_++, "closes no block; expected \"residual [\" before it");
    if (!errors_.empty())
      return tl::unexpected(errors_);
    return layers;
  }

private:
  void add_error(std::size_t position, const std::string& text) {
    errors_ +=
        fmt::format("{}model.layers[{}] = \"{}\": {}", errors_.empty() ? "" : "; ", position, texts_[position], text);
  }

  /// Parses layers up to the end or to a text that begins with "]", which it does not consume.
  std::vector<layer_spec> list(const std::string& prefix, std::size_t depth) {
    std::vector<layer_spec> layers;
    while (at_ < texts_.size()) {
      auto words = words_of(texts_[at_]);
      if (!words.empty() && words.front() == "]")
        break;
      layer_spec layer{.position = at_, .text = texts_[at_], .name = fmt::format("{}{}", prefix, layers.size())};
      while (given_names_.contains(layer.name))
        layer.name += "_";
      if (!words.empty() && is_name(words.front())) {
        layer.name = words.front().substr(0, words.front().size() - 1);
        words.erase(words.begin());
      }
      ++at_;
      if (!names_.insert(layer.name).second)
        add_error(layer.position, fmt::format("the name {} occurs twice; names must differ", layer.name));
      if (words.empty()) {
        add_error(layer.position, "expected a layer, as \"conv 32 3x3 pad 1\"");
        continue;
      }
      layer.kind = words.front();
      layer.words.assign(words.begin() + 1, words.end());
      if (layer.kind == "residual")
        read_block(layer, depth);
      layers.push_back(std::move(layer));
    }
    return layers;
  }

  void read_block(layer_spec& layer, std::size_t depth) {
    if (layer.words != std::vector<std::string>{"["} || depth == nesting_max)
      return add_error(layer.position, depth == nesting_max ? "blocks are nested too deeply"
                                                            : "expected \"residual [\", the block's layers, and \"]\"");
    layer.words.clear();
    layer.body = list(layer.name + ".body.", depth + 1);
    if (layer.body.empty())
      add_error(layer.position, "the block has no layers; expected some before \"]\"");
    if (closes_with(layer, {"]", "shortcut", "["})) {
      layer.shortcut = list(layer.name + ".shortcut.", depth + 1);
      if (layer.shortcut.empty())
        add_error(layer.position, "the shortcut has no layers; expected some, or \"]\" alone");
    } else if (at_ < texts_.size() && words_of(texts_[at_]) != std::vector<std::string>{"]"}) {
      add_error(at_++, "expected \"]\" or \"] shortcut [\"");
      return;
    }
    if (at_ == texts_.size())
      return add_error(layer.position, "the block is not closed; expected \"]\" after its layers");
    if (words_of(texts_[at_]) != std::vector<std::string>{"]"})
      add_error(at_, "expected \"]\"");
    ++at_;
  }
  bool closes_with(const layer_spec&, const std::vector<std::string>& words) {
    if (at_ == texts_.size() || words_of(texts_[at_]) != words)
      return false;
    ++at_;
    return true;
  }

  const std::vector<std::string>& texts_;
  std::size_t at_ = 0;
  std::set<std::string> given_names_; // in the texts; a layer without a name has another one
  std::set<std::string> names_;
  std::string errors_;
};

} // namespace

std::string layer_spec::place() const { return fmt::format("model.layers[{}] = \"{}\"", position, text); }

tl::expected<std::vector<layer_spec>, std::string> parse_layers(const std::vector<std::string>& texts) {
  return layer_parser(texts).parse();
}

layer_spec_reader::layer_spec_reader(const layer_spec& layer, std::string usage)
    : place_(layer.place()), usage_(std::move(usage)), words_(layer.words) {}

void layer_spec_reader::refuse(const std::string& flaw) {
  if (errors_.empty())
    errors_ = fmt::format("{}: {}; expected \"{}\"", place_, flaw, usage_);
}

std::int64_t layer_spec_reader::integer(const char* noun, std::int64_t low, std::int64_t high, std::int64_t otherwise) {
  std::int64_t value = otherwise;
  if (words_.empty()) {
    if (otherwise < 0)
      refuse(fmt::format("the {} is missing", noun));
    return std::max(otherwise, low);
  }
  if (!parse_bounded(words_.front(), low, high, value)) {
    refuse(fmt::format("found '{}' as the {}; expected an integer from {} to {}", words_.front(), noun, low, high));
    value = low;
  }
  words_.erase(words_.begin());
  return value;
}

double layer_spec_reader::number(const char* noun, double low, double high, double otherwise) {
  if (words_.empty()) {
    if (otherwise < 0.0)
      refuse(fmt::format("the {} is missing", noun));
    return std::max(otherwise, low);
  }
  double value = otherwise;
  const auto& word = words_.front();
  if (!parse_bounded(word, low, high, value)) {
    refuse(fmt::format("found '{}' as the {}; expected a number from {} to {}", word, noun, low, high));
    value = low;
  }
  words_.erase(words_.begin());
  return value;
}

std::int64_t layer_spec_reader::square(const char* noun, std::int64_t high) {
  if (!words_.empty()) {
    auto& word = words_.front();
    if (const auto cross = word.find('x'); cross != std::string::npos) {
      if (word.substr(0, cross) != word.substr(cross + 1))
        refuse(fmt::format("the {} {} is not square; expected equal sides", noun, word));
      word.resize(cross);
    }
  }
  return integer(noun, 1, high);
}

bool layer_spec_reader::flag(const std::string& word) {
  const auto place = std::find(words_.begin(), words_.end(), word);
  if (place == words_.end())
    return false;
  words_.erase(place);
  return true;
}

std::int64_t layer_spec_reader::named(const std::string& word, std::int64_t low, std::int64_t high,
                                      std::int64_t otherwise) {
  const auto text = take_after(word);
  std::int64_t value = otherwise;
  if (text && !parse_bounded(*text, low, high, value)) {
    refuse(fmt::format("'{}' must be followed by an integer from {} to {}", word, low, high));
    return low;
  }
  return value;
}

double layer_spec_reader::named_number(const std::string& word, double low, double high, double otherwise) {
  const auto text = take_after(word);
  double value = otherwise;
  if (text && !parse_bounded(*text, low, high, value)) {
    refuse(fmt::format("'{}' must be followed by a number from {} to {}", word, low, high));
    return low;
  }
  return value;
}

/// Consumes `word` and the word after it. Returns the latter, "" if it is missing; nullopt without `word`.
std::optional<std::string> layer_spec_reader::take_after(const std::string& word) {
  const auto place = std::find(words_.begin(), words_.end(), word);
  if (place == words_.end())
    return std::nullopt;
  const auto last = place + 1 == words_.end() ? words_.end() : place + 2;
  auto text = last - place == 2 ? *(place + 1) : "";
  words_.erase(place, last);
  return text;
}

std::string layer_spec_reader::finish() {
  if (errors_.empty() && !words_.empty())
    refuse(fmt::format("'{}' is not an option of this layer", words_.front()));
  return errors_;
}

} // namespace mneme
