#include "runtime/models/low_rank_vit.hpp"
#include "runtime/models/prompted_vit.hpp"
#include "runtime/models/token_layers.hpp"
#include "runtime/options/keys.hpp"
#include <sstream>
namespace mneme {
namespace {

/// The vision transformer of Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words", with timm's names; by default it
/// is the base model with patches of 16 pixels. With adapters (Chen et al. 2022, "AdaptFormer", eq. 4 and 5) the body
/// is frozen. An adapter is a trained bottleneck parallel to a block's MLP, with zero output at first. Low-rank
/// adapters (low_rank.hpp) freeze the body, too.
///
/// The image tower of CLIP (Radford et al. 2021, "Learning Transferable Visual Models From Natural Language
/// Supervision") differs in a normalization before the first block, a patch embedding without bias, epsilons of 1e-5
/// and the approximation of GELU. Its features are the class token after the last normalization, before CLIP's
/// projection.
class vit_kind final : public model_kind {
public:
  explicit vit_kind(bool clip) : clip_(clip) {}
  void keys(key_table& table) override {
    table.integer("image", image_px_, {.low = 0, .high = 4096},
                  "Side length to which images are resized (bilinear); 0: original size.");
    table.integer("patch", patch_px_, {.low = 1, .high = 4096}, "Side length of a patch in pixels.");
    table.integer("width", width_, {.low = 1, .high = 65'536}, "Width of a token's vector.");
    table.integer("depth", depth_, {.low = 1, .high = 200}, "Number of blocks, each of attention and an MLP.");
    table.integer("heads", heads_, {.low = 1, .high = 1024}, "Number of attention heads; must divide the width.");
    table.integer("adapter", adapter_, {.low = 0, .high = 65'536},
                  "Bottleneck width of an adapter parallel to each MLP; only adapters and the head are trained then; "
                  "0: no adapters.");
    if (clip_)
      table.flag("quick_gelu", quick_gelu_,
                 "true: x sigmoid(1.702 x) instead of GELU, as in OpenAI's weights; false: GELU, as in OpenCLIP's.");
    low_rank_.keys(table, {"query", "key", "value", "qkv", "projection", "mlp"});
    head_keys(table);
  }

  [[nodiscard]] tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3> shape,
                                                           std::int64_t classes) const override {
    const auto [channels, data_height, data_width] = shape;
    const auto height = image_px_ > 0 ? image_px_ : data_height, width = image_px_ > 0 ? image_px_ : data_width;
    if (height % patch_px_ != 0 || width % patch_px_ != 0)
      return tl::unexpected(name() + " cannot cut images of " + std::to_string(height) + " x " + std::to_string(width) +
                            " pixels into patches of " + std::to_string(patch_px_) +
                            "; model.patch must divide both, model.image resizes");
    if (width_ % heads_ != 0)
      return tl::unexpected(name() + " cannot split a width of " + std::to_string(width_) + " evenly over " +
                            std::to_string(heads_) + " heads; model.heads must divide model.width");
    if (auto error = low_rank_error(); !error.empty())
      return tl::unexpected(std::move(error));
    network_builder net(identity_of(shape, classes), shape);
    add_body(net, height, width);
    if (prompts().form == prompt_form::none) {
      net.add_head("head", classes, head());
      return net.build();
    }
    if (const auto error = prompts_error(); !error.empty())
      return tl::unexpected(error);
    net.end_headless();
    const auto body = net.build();
    const vit_shape whole{.input = shape,
                          .resized = {height, width},
                          .patch = patch_px_,
                          .width = width_,
                          .depth = depth_,
                          .heads = heads_};
    if (prompts().form == prompt_form::low_rank)
      return std::make_shared<low_rank_vit>(whole, prompts(), body->layout(), classes);
    return std::make_shared<prompted_vit>(whole, prompts(), body->layout(), tasks_or_one(classes), classes);
  }

private:
  [[nodiscard]] std::string name() const { return clip_ ? "clip" : "vit"; }
  [[nodiscard]] double epsilon() const { return clip_ ? 1e-5 : 1e-6; }

  [[nodiscard]] std::string low_rank_error() const {
    if (low_rank_.is_enabled() && adapter_ > 0)
      return "model.low_rank and model.adapter are both set; expected one of them, the other 0";
    if (low_rank_.is_enabled() && prompts().form != prompt_form::none)
      return "model.low_rank: the method adds parts of its own to the transformer; expected model.low_rank = 0";
    return low_rank_.error(name(), width_);
  }

  [[nodiscard]] std::string prompts_error() const {
    if (clip_)
      return "the method adds prompts or low-rank adapters to a vit, which clip is not; expected model.name = \"vit\"";
    for (const auto* const blocks : {&prompts().blocks, &prompts().general})
      for (const auto block : *blocks)
        if (block >= depth_)
          return (prompts().form == prompt_form::low_rank ? "a low-rank adapter" : "a prompt") +
                 std::string(" of block ") + std::to_string(block) + " is outside a vit of " + std::to_string(depth_) +
                 " blocks, which are counted from 0; expected smaller numbers in strategy.blocks, or a larger "
                 "model.depth";
    if (prompts().form == prompt_form::low_rank && prompts().rank > width_)
      return "a low-rank adapter of rank " + std::to_string(prompts().rank) + " exceeds a vit of width " +
             std::to_string(width_) + ", whose matrices have at most that rank; expected strategy.rank <= model.width";
    if (!head().hidden.empty())
      return prompts().form == prompt_form::low_rank
                 ? "a vit with low-rank adapters ends with a center per class; expected no model.head_hidden"
                 : "a vit with prompts ends with one linear layer; expected no model.head_hidden";
    if (adapter_ == 0)
      return "";
    return prompts().form == prompt_form::low_rank
               ? "a vit has either low-rank adapters or bottleneck adapters; expected model.adapter = 0"
               : "a vit is adapted by prompts or by adapters; expected model.adapter = 0";
  }

  /// Classes of each task; if no tasks are set, one task with all classes.
  [[nodiscard]] std::vector<class_range> tasks_or_one(std::int64_t classes) const {
    return tasks().empty() ? std::vector<class_range>{{0, classes}} : tasks();
  }

  [[nodiscard]] std::string identity_of(std::array<std::int64_t, 3> shape, std::int64_t classes) const {
    std::ostringstream text;
    text << name() << (clip_ && !quick_gelu_ ? " by gelu " : " ") << shape[0] << "x" << shape[1] << "x" << shape[2]
         << "-" << classes << " image " << image_px_ << " patch " << patch_px_ << " width " << width_ << " depth "
         << depth_ << " heads " << heads_;
    if (adapter_ > 0)
      text << " adapter " << adapter_ << " by " << std::hexfloat << adapter_scale;
    text << low_rank_.text();
    return text.str();
  }

  void add_body(network_builder& net, std::int64_t height, std::int64_t width) const {
    net.freeze(adapter_ > 0 || low_rank_.is_enabled());
    add_resize(net, height, width);
    add_patch_embedding(net, patch_px_, width_, !clip_);
    if (clip_)
      add_tokens_norm(net, "norm_pre", epsilon());
    for (std::int64_t i = 0; i < depth_; ++i) {
      const auto name = "blocks." + std::to_string(i);
      add_block(net, name, i + 1 == depth_);
      net.expose_map(name);
    }
    add_tokens_norm(net, "norm", epsilon());
    net.freeze(false);
  }

  /// Adds a block. The last block computes only its class token.
  void add_block(network_builder& net, const std::string& name, bool last) const {
    auto x = net.cursor();
    const auto tokens = last ? 1 : net.shape_here().pixels();
    add_tokens_norm(net, name + ".norm1", epsilon());
    const auto normed = net.cursor();
    add_tokens_linear(net, name + ".attn.qkv", {.out = 3 * width_});
    add_low_rank(net, normed, low_rank_, attention_parts(low_rank_, name + ".attn.", width_));
    add_attention(net, heads_, tokens);
    add_tokens_linear(net, name + ".attn.proj", {.out = width_}, low_rank_, "projection");
    if (last) {
      const auto attended = net.cursor();
      net.set_cursor(x);
      add_first_token(net);
      x = net.cursor();
      net.set_cursor(attended);
    }
    net.add_sum(x, activation::none);
    const auto z = net.cursor();
    add_tokens_norm(net, name + ".norm2", epsilon());
    add_tokens_linear(net, name + ".mlp.fc1", {.out = mlp_ratio * width_}, low_rank_, "mlp");
    clip_&& quick_gelu_ ? add_quick_gelu(net) : add_gelu(net);
    add_tokens_linear(net, name + ".mlp.fc2", {.out = width_}, low_rank_, "mlp");
    net.add_sum(z, activation::none);
    if (adapter_ > 0)
      add_adapter(net, name + ".adapter", z);
  }

  /// Adds s Up(Dropout(ReLU(Down(z)))) to the last value.
  void add_adapter(network_builder& net, const std::string& name, network_place z) const {
    const auto without = net.cursor();
    net.freeze(false);
    net.set_cursor(z);
    add_tokens_linear(net, name + ".down", {.out = adapter_, .after = activation::relu, .drawn = draw_kind::uniform});
    net.add_dropout(dropped);
    add_tokens_linear(net, name + ".up", {.out = width_, .scale = adapter_scale, .drawn = draw_kind::zeros});
    net.add_sum(without, activation::none);
    net.freeze(true);
  }

  static constexpr std::int64_t mlp_ratio = 4;
  static constexpr double dropped = 0.1;
  static constexpr double adapter_scale = 0.1; // s of AdaptFormer

  std::int64_t image_px_ = 0, patch_px_ = 16, width_ = 768, depth_ = 12, heads_ = 12, adapter_ = 0;
  low_rank_options low_rank_;
  bool clip_, quick_gelu_ = true;
};

const model_registration vit_line{
    {.name = "vit",
     .summary = "vision transformer as in timm; optional bottleneck or low-rank adapters (LoRA) in a frozen body",
     .make = []() -> std::unique_ptr<model_kind> { return std::make_unique<vit_kind>(false); }}};
const model_registration clip_line{
    {.name = "clip",
     .summary = "image tower of CLIP; optional bottleneck or low-rank adapters (LoRA) in a frozen body",
     .make = []() -> std::unique_ptr<model_kind> { return std::make_unique<vit_kind>(true); }}};

} // namespace
} // namespace mneme
