// layers: a net that the user defines as a list of layers in the scenario.
#include "runtime/base/diagnostic.hpp"
#include "runtime/models/image_layers.hpp"
#include "runtime/models/layer_specs.hpp"
#include "runtime/models/token_layers.hpp"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <xxhash.h>
namespace mneme {
namespace {

constexpr std::int64_t units_max = 65'536;
constexpr std::int64_t kernel_max = 15;
constexpr double norm_epsilon = 1e-5; // PyTorch's default

/// Kind of a layer's input.
enum class arriving : std::uint8_t { images, numbers, tokens, indices };

bool fuses_relu(const layer_spec& layer) {
  return layer.kind == "conv" || layer.kind == "linear" || layer.kind == "batch-norm" || layer.kind == "group-norm" ||
         layer.kind == "residual";
}

std::string shape_text(const image_shape& shape, arriving kind) {
  switch (kind) {
  case arriving::images:
    return fmt::format("images of {} x {} x {} (channels, height, width)", shape.channels, shape.height, shape.width);
  case arriving::tokens:
    return fmt::format("{} tokens of {} numbers", shape.pixels(), shape.channels);
  case arriving::indices:
    return fmt::format("rows of {} tokens", shape.width);
  case arriving::numbers:
    break;
  }
  return fmt::format("rows of {} numbers", shape.floats());
}

bool is_same(const image_shape& a, const image_shape& b) {
  return a.height == b.height && a.width == b.width && a.channels == b.channels;
}

/// Adds layers to a net, up to the first error.
class layers_builder {
public:
  layers_builder(network_builder& net, arriving at_first, std::int64_t classes, std::int64_t known_tokens,
                 head_shape head)
      : net_(net), kind_(at_first), classes_(classes), known_tokens_(known_tokens), head_(std::move(head)) {}

  /// Returns the first error; "" on success.
  std::string add_all(const std::vector<layer_spec>& layers) {
    add_list(layers, true);
    if (errors_.empty() && !ended_)
      refuse(layers.back(),
             fmt::format("the net has no head; expected \"linear classes\" as the last layer, whose input would be {}",
                         arrived()));
    return errors_;
  }

private:
  using adder = void (layers_builder::*)(const layer_spec&);
  struct known_layer {
    const char* usage;
    adder add;
  };
  static const std::map<std::string, known_layer>& known() {
    using self = layers_builder;
    static const std::map<std::string, known_layer> table{
        {"conv", {"conv FILTERS KERNEL [stride N] [pad N] [no-bias] [he-normal]", &self::convolution}},
        {"linear", {"linear classes, linear UNITS [no-bias]", &self::linear}},
        {"batch-norm", {"batch-norm", &self::batch_norm}},
        {"group-norm", {"group-norm GROUPS", &self::group_norm}},
        {"layer-norm", {"layer-norm [EPSILON]", &self::layer_norm}},
        {"relu", {"relu", &self::activation_function}},
        {"leaky-relu", {"leaky-relu [SLOPE]", &self::activation_function}},
        {"sigmoid", {"sigmoid", &self::activation_function}},
        {"tanh", {"tanh", &self::activation_function}},
        {"silu", {"silu", &self::activation_function}},
        {"gelu", {"gelu", &self::activation_function}},
        {"max-pool", {"max-pool WINDOW [stride N] [pad N]", &self::max_pool}},
        {"global-avg-pool", {"global-avg-pool", &self::global_mean}},
        {"dropout", {"dropout RATE", &self::dropout}},
        {"flatten", {"flatten", &self::flatten}},
        {"subsample", {"subsample STRIDE CHANNELS [first N]", &self::subsample}},
        {"embedding", {"embedding WIDTH", &self::embedding}},
        {"lstm", {"lstm WIDTH", &self::lstm}},
        {"patch-embedding", {"patch-embedding PATCH WIDTH", &self::patch_embedding}},
        {"attention", {"attention HEADS [first-token]", &self::attention}},
        {"first-token", {"first-token", &self::one_token}},
        {"last-token", {"last-token", &self::one_token}},
    };
    return table;
  }

  // -- lists ----------------------------------------------------------------------------------------------------------

  void add_list(const std::vector<layer_spec>& layers, bool is_top) {
    for (std::size_t i = 0; i < layers.size() && errors_.empty(); ++i) {
      const auto& layer = layers[i];
      if (ended_)
        return refuse(layer, "follows the head; expected \"linear classes\" as the last layer");
      is_last_ = is_top && i + 1 == layers.size();
      // A layer with parameters computes a ReLU after it, if it can, as in mneme's other nets.
      const bool has_relu = i + 1 < layers.size() && layers[i + 1].kind == "relu" && fuses_relu(layer);
      after_ = has_relu ? activation::relu : activation::none;
      add(layer);
      if (!errors_.empty() || !has_relu)
        continue;
      const auto& relu = layers[++i];
      words_ = std::make_unique<layer_spec_reader>(relu, "relu");
      end_words();
    }
  }

  void add(const layer_spec& layer) {
    if (layer.kind == "residual")
      return residual(layer);
    const auto entry = known().find(layer.kind);
    if (entry == known().end()) {
      std::vector<std::string> names{"residual"};
      for (const auto& [name, usage] : known())
        names.push_back(name);
      const auto meant = closest_match(layer.kind, names);
      return refuse(layer, fmt::format("unknown layer '{}'; {}", layer.kind,
                                       meant.empty() ? fmt::format("expected one of {}", fmt::join(names, ", "))
                                                     : fmt::format("did you mean '{}'?", meant)));
    }
    const bool reads_rows = layer.kind == "conv" || layer.kind == "flatten" || layer.kind == "patch-embedding";
    if (!reads_rows)
      make_channels_last();
    if (kind_ == arriving::indices && layer.kind != "embedding")
      return refuse(layer, fmt::format("the input is {}; expected embedding as the first layer", arrived()));
    words_ = std::make_unique<layer_spec_reader>(layer, entry->second.usage);
    (this->*entry->second.add)(layer);
  }

  void residual(const layer_spec& layer) {
    if (kind_ == arriving::indices)
      return refuse(layer, fmt::format("the input is {}; expected embedding before the first block", arrived()));
    const auto after = after_;
    if (net_.cursor() == 0)
      make_channels_last();
    make_flat();
    const auto start = net_.cursor();
    const auto kind = kind_;
    const auto begin_shape = net_.shape_here();
    add_list(layer.body, false);
    const auto end = net_.cursor();
    const auto end_shape = net_.shape_here();
    const auto end_kind = kind_;
    if (!errors_.empty())
      return;
    if (ended_)
      return refuse(layer, "the head is inside a block; expected it after all blocks");
    net_.set_cursor(start);
    kind_ = kind;
    add_list(layer.shortcut, false);
    if (!errors_.empty())
      return;
    if (kind_ != end_kind || !is_same(net_.shape_here(), end_shape))
      return refuse(layer,
                    fmt::format("the block's layers end with {} and its shortcut with {} (the block's input is {}); "
                                "expected the same, as with \"] shortcut [\", \"conv {} 1x1 stride N\", \"]\"",
                                shape_text(end_shape, end_kind), arrived(), shape_text(begin_shape, kind),
                                end_shape.channels));
    if (layer.shortcut.empty()) {
      net_.set_cursor(end);
      net_.add_sum(start, after);
    } else {
      net_.add_sum(end, after);
    }
  }

  // -- layers ---------------------------------------------------------------------------------------------------------

  void convolution(const layer_spec& layer) {
    convolution_options how{.filters = words_->integer("number of filters", 1, units_max),
                            .kernel = words_->square("kernel", kernel_max),
                            .stride = words_->named("stride", 1, 64, 1),
                            .padding = words_->named("pad", 0, kernel_max, 0),
                            .bias = !words_->flag("no-bias"),
                            .after = after_,
                            .he_normal = words_->flag("he-normal")};
    if (!end_words() || !reads(layer, arriving::images))
      return;
    const auto in = net_.shape_here();
    if (std::min(in.height, in.width) + 2 * how.padding < how.kernel)
      return refuse(layer, fmt::format("a window of {0} x {0} does not fit into {1} with a border of {2}; expected a "
                                       "smaller kernel, or more pad",
                                       how.kernel, arrived(), how.padding));
    add_convolution(net_, layer.name, how);
  }

  void linear(const layer_spec& layer) {
    const bool is_head = words_->flag("classes");
    const auto units = is_head ? classes_ : words_->integer("number of units", 1, units_max);
    const bool biased = !words_->flag("no-bias");
    if (!end_words())
      return;
    if (kind_ == arriving::images)
      return refuse(layer, fmt::format("the input is {}; expected flatten or global-avg-pool before it", arrived()));
    if (is_last_ || is_head) {
      if (!is_last_)
        return refuse(layer, "\"linear classes\" is the head; expected it as the last layer");
      if (units != classes_)
        return refuse(layer,
                      fmt::format("the last layer has {} rows, but the run has {} classes; expected \"linear classes\"",
                                  units, classes_));
      if (!biased)
        return refuse(layer, "heads have a bias; expected no \"no-bias\"");
      if (kind_ == arriving::tokens)
        return refuse(layer,
                      fmt::format("the input is {}; expected first-token or last-token before the head", arrived()));
      if (head_.hidden.empty() && net_.cursor() > 0)
        make_flat(); // rows of the head are stored as in files
      net_.add_head(layer.name, classes_, head_);
      ended_ = true;
      return;
    }
    if (kind_ == arriving::numbers)
      return net_.add_linear(layer.name, units, after_, biased);
    if (!biased)
      return refuse(layer, "layers of tokens have a bias; expected no \"no-bias\"");
    add_tokens_linear(net_, layer.name, {.out = units, .after = after_, .drawn = draw_kind::uniform});
  }

  void batch_norm(const layer_spec& layer) {
    if (!end_words() || !not_tokens(layer))
      return;
    make_flat();
    net_.add_normalisation(layer.name, 0, after_);
  }
  void group_norm(const layer_spec& layer) {
    const auto groups = words_->integer("number of groups", 1, units_max);
    if (!end_words() || !not_tokens(layer))
      return;
    make_flat();
    if (net_.shape_here().channels % groups != 0)
      return refuse(layer, fmt::format("{} channels do not divide into {} groups", net_.shape_here().channels, groups));
    net_.add_normalisation(layer.name, groups, after_);
  }
  void layer_norm(const layer_spec& layer) {
    const auto epsilon = words_->number("epsilon", 1e-12, 1.0, norm_epsilon);
    if (!end_words())
      return;
    if (kind_ == arriving::images)
      return refuse(
          layer,
          fmt::format(
              "the input is {}, but layer-norm reads rows of numbers or tokens; expected batch-norm or group-norm",
              arrived()));
    make_flat();
    add_tokens_norm(net_, layer.name, epsilon);
  }

  void activation_function(const layer_spec& layer) {
    const auto slope = layer.kind == "leaky-relu" ? words_->number("slope", 0.0, 1.0, 0.01) : 0.0;
    if (!end_words())
      return;
    if (layer.kind == "gelu")
      return add_gelu(net_);
    // If the layer before a ReLU cannot compute it, it is a leaky ReLU with slope 0.
    net_.add_activation(layer.kind == "sigmoid" ? activation::sigmoid
                        : layer.kind == "tanh"  ? activation::tanh
                        : layer.kind == "silu"  ? activation::silu
                                                : activation::leaky,
                        slope);
  }

  void max_pool(const layer_spec& layer) {
    const auto window = words_->square("window", 1024);
    const auto stride = words_->named("stride", 1, 1024, window), padding = words_->named("pad", 0, window / 2, 0);
    if (!end_words() || !reads(layer, arriving::images))
      return;
    const auto in = net_.shape_here();
    if (std::min(in.height, in.width) + 2 * padding < window)
      return refuse(layer, fmt::format("a window of {0} x {0} does not fit into {1}", window, arrived()));
    add_max_pool(net_, window, stride, padding);
  }
  void global_mean(const layer_spec& layer) {
    if (!end_words() || !reads(layer, arriving::images))
      return;
    add_mean_pool(net_);
    kind_ = arriving::numbers;
  }
  void dropout(const layer_spec&) {
    const auto rate = words_->number("rate", 0.0, 0.999);
    if (end_words())
      net_.add_dropout(rate);
  }
  void flatten(const layer_spec& layer) {
    if (!end_words())
      return;
    if (kind_ == arriving::tokens)
      return refuse(layer, fmt::format("the input is {}; expected first-token or last-token", arrived()));
    kind_ = arriving::numbers; // weights of the next layer are in channels-first order, as in PyTorch
  }
  void subsample(const layer_spec& layer) {
    const auto stride = words_->integer("stride", 1, 64),
               channels = words_->integer("number of channels", 1, units_max);
    const auto first = words_->named("first", 0, units_max, 0);
    if (!end_words() || !reads(layer, arriving::images))
      return;
    if (first + net_.shape_here().channels > channels)
      return refuse(
          layer, fmt::format("{} channels from {} on do not fit into {}", net_.shape_here().channels, first, channels));
    add_subsampling(net_, stride, channels, first);
  }

  // -- tokens ---------------------------------------------------------------------------------------------------------

  void embedding(const layer_spec& layer) {
    const auto width = words_->integer("width", 1, units_max);
    if (!end_words() || !reads(layer, arriving::indices))
      return;
    add_token_embedding(net_, layer.name, known_tokens_, width);
    kind_ = arriving::tokens;
  }
  void lstm(const layer_spec& layer) {
    const auto width = words_->integer("width", 1, units_max);
    if (end_words() && reads(layer, arriving::tokens))
      add_lstm(net_, layer.name, 0, width);
  }
  void patch_embedding(const layer_spec& layer) {
    const auto patch = words_->integer("patch", 1, 1024), width = words_->integer("width", 1, units_max);
    if (!end_words() || !reads(layer, arriving::images))
      return;
    const auto in = net_.shape_here();
    if (net_.cursor() != 0 || in.height % patch != 0 || in.width % patch != 0)
      return refuse(
          layer, fmt::format("the input is {}; expected images with sides that the patch divides, and this layer first",
                             arrived()));
    add_patch_embedding(net_, patch, width);
    kind_ = arriving::tokens;
  }
  void attention(const layer_spec& layer) {
    const bool first_alone = words_->flag("first-token");
    const auto heads = words_->integer("number of heads", 1, 1024);
    if (!end_words() || !reads(layer, arriving::tokens))
      return;
    const auto in = net_.shape_here();
    if (in.channels % heads != 0)
      return refuse(layer, fmt::format("{} numbers of a token do not divide into {} heads", in.channels, heads));
    add_tokens_linear(net_, layer.name + ".qkv", {.out = 3 * in.channels, .drawn = draw_kind::uniform});
    add_attention(net_, heads, first_alone ? 1 : in.pixels());
    add_tokens_linear(net_, layer.name + ".proj", {.out = in.channels, .drawn = draw_kind::uniform});
    if (first_alone)
      kind_ = arriving::numbers;
  }
  void one_token(const layer_spec& layer) {
    if (!end_words() || !reads(layer, arriving::tokens))
      return;
    layer.kind == "first-token" ? add_first_token(net_) : add_last_token(net_);
    kind_ = arriving::numbers;
  }

  // -- words ----------------------------------------------------------------------------------------------------------

  bool end_words() {
    errors_ = words_->finish();
    return errors_.empty();
  }
  void refuse(const layer_spec& layer, const std::string& text) {
    if (errors_.empty())
      errors_ = fmt::format("{}: {}", layer.place(), text);
  }
  bool reads(const layer_spec& layer, arriving kind) {
    if (kind_ == kind)
      return true;
    const char* const expected = kind == arriving::images    ? "images"
                                 : kind == arriving::numbers ? "rows of numbers"
                                 : kind == arriving::tokens  ? "tokens as vectors (after embedding or patch-embedding)"
                                                             : "rows of tokens (as the first layer)";
    refuse(layer, fmt::format("the input is {}; expected {}", arrived(), expected));
    return false;
  }
  bool not_tokens(const layer_spec& layer) {
    if (kind_ == arriving::tokens)
      refuse(layer, fmt::format("the input is {}; expected layer-norm", arrived()));
    return kind_ != arriving::tokens;
  }
  /// Converts the net's input images from channels first to channels last.
  void make_channels_last() {
    if (const auto in = net_.shape_here(); net_.cursor() == 0 && kind_ == arriving::images && in.channels > 1)
      add_images(net_, in.channels, in.height, in.width);
  }
  /// Converts images after `flatten` to flat rows, which all layers except linear ones require.
  void make_flat() {
    if (const auto in = net_.shape_here(); kind_ == arriving::numbers && in.pixels() > 1)
      add_flat_rows(net_);
  }
  [[nodiscard]] std::string arrived() const { return shape_text(net_.shape_here(), kind_); }

  network_builder& net_;
  arriving kind_;
  std::int64_t classes_, known_tokens_;
  head_shape head_;
  activation after_ = activation::none;
  bool is_last_ = false, ended_ = false;
  std::unique_ptr<layer_spec_reader> words_;
  std::string errors_;
};

class layers_kind final : public model_kind {
public:
  void keys(key_table& table) override {
    table.texts("layers", layers_,
                "The layers, as in [\"conv 32 3x3 pad 1\", \"batch-norm\", \"relu\", \"max-pool 2\", \"flatten\", "
                "\"linear classes\"]; \"residual [\", ..., \"]\" or \"] shortcut [\", ..., \"]\" are blocks. "
                "docs/nets.md lists all layers.");
    head_keys(table);
  }
  [[nodiscard]] bool reads_tokens() const override {
    return !layers_.empty() && layers_.front().find("embedding") != std::string::npos &&
           layers_.front().find("patch-embedding") == std::string::npos;
  }

  [[nodiscard]] tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3> shape,
                                                           std::int64_t classes) const override {
    const auto layers = parse_layers(layers_);
    if (!layers)
      return tl::unexpected(layers.error());
    const auto [channels, height, width] = shape;
    const auto text = fmt::format("{}", fmt::join(layers_, "\n"));
    network_builder net(fmt::format("layers {:016x} {}x{}x{}-{}", XXH3_64bits(text.data(), text.size()), channels,
                                    height, width, classes),
                        shape);
    const auto kind = tokens() > 0                   ? arriving::indices
                      : channels == 1 && height == 1 ? arriving::numbers
                                                     : arriving::images;
    auto error = layers_builder(net, kind, classes, tokens(), head()).add_all(*layers);
    if (!error.empty())
      return tl::unexpected(std::move(error));
    return net.build();
  }

private:
  std::vector<std::string> layers_{"flatten", "linear 200", "relu", "linear classes"};
};

const model_registration layers_line{
    {.name = "layers",
     .summary = "a user-defined net, layer by layer in model.layers, fused like all others; docs/nets.md",
     .make = []() -> std::unique_ptr<model_kind> { return std::make_unique<layers_kind>(); }}};

} // namespace
} // namespace mneme
