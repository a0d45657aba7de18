#include "runtime/models/token_layers.hpp"
#include "runtime/options/keys.hpp"
#include <fmt/format.h>
namespace mneme {
namespace {

/// BERT as a classifier (Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers"), with the
/// parameter names of BertForSequenceClassification in the library transformers. It consists of token and position
/// embeddings, blocks of attention and MLP with a normalization after each, and a tanh layer on the first token. The
/// default sizes are those of the tiny model of Turc et al. 2019. Padding tokens are masked. Unlike in transformers,
/// attention weights have no dropout. With low-rank adapters (low_rank.hpp) the body, including the tanh layer, is
/// frozen.
///
/// With model.causal the net is a causal language model instead (Radford et al. 2018, section 3.1): a token attends to
/// itself and the tokens before it, and a linear layer computes the scores of the next token of each position.
/// Parameters are those of BertForTokenClassification with is_decoder = True. The scores do not share the embedding's
/// weights.
class bert_kind final : public model_kind {
public:
  void keys(key_table& table) override {
    table.integer("vocabulary", vocabulary_, {.low = 0, .high = 16'777'216},
                  "Vocabulary size of the net; 0: that of the data set.");
    table.integer("width", width_, {.low = 1, .high = 65'536}, "Width of a token's vector.");
    table.integer("depth", depth_, {.low = 1, .high = 200}, "Number of blocks, each of attention and an MLP.");
    table.integer("heads", heads_, {.low = 1, .high = 1024}, "Number of attention heads; must divide the width.");
    table.integer("mlp", mlp_, {.low = 0, .high = 1'048'576}, "Hidden width of an MLP; 0: four times the width.");
    table.integer("positions", positions_, {.low = 0, .high = 1'048'576},
                  "Number of position embeddings, 512 in the published files; 0: the length of the data set's rows.");
    table.integer("padding", padding_, {.low = -1, .high = 16'777'215},
                  "Padding token: no token attends to it, and its vector is not trained; -1: none.");
    table.number("dropout", dropout_, {.low = 0.0, .high = 0.99},
                 "Dropout rate after embeddings, attention, MLP and the last layer.");
    table.flag("causal", causal_,
               "Predicts the next token of each position from the tokens before it; labels then serve tasks and "
               "partition only. Accuracy and loss are those of tokens.");
    table.omit_default_from_digest();
    low_rank_.keys(table, {"query", "key", "value", "projection", "mlp"});
    head_keys(table);
  }
  [[nodiscard]] bool reads_tokens() const override { return true; }

  [[nodiscard]] tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3> shape,
                                                           std::int64_t classes) const override {
    const auto row = shape[2], known = vocabulary_ > 0 ? vocabulary_ : tokens();
    const auto positions = positions_ > 0 ? positions_ : row;
    if (shape[0] != 1 || shape[1] != 1 || known == 0)
      return tl::unexpected(
          fmt::format("bert reads rows of tokens, but these data have images of {} x {} x {}; vit reads images",
                      shape[0], shape[1], shape[2]));
    if (known < tokens())
      return tl::unexpected(fmt::format("bert has a vocabulary of {} tokens, but the data set has {}; expected a "
                                        "model.vocabulary of at least that, or 0 for the data set's",
                                        known, tokens()));
    if (positions < row)
      return tl::unexpected(fmt::format("bert has {} position embeddings, but rows have {} tokens; expected "
                                        "model.positions of at least that, or 0 for the length of rows",
                                        positions, row));
    if (padding_ >= known)
      return tl::unexpected(fmt::format(
          "bert has {} tokens, and model.padding = {} is not one of them; expected a smaller number, or -1 for none",
          known, padding_));
    if (width_ % heads_ != 0)
      return tl::unexpected(fmt::format(
          "bert cannot split a width of {} evenly over {} heads; model.heads must divide model.width", width_, heads_));
    if (auto error = causal_error(row); !error.empty())
      return tl::unexpected(std::move(error));
    if (auto error = low_rank_.error("bert", width_); !error.empty())
      return tl::unexpected(std::move(error));
    network_builder net(
        fmt::format("bert {} tokens of {}, width {} depth {} heads {} mlp {} positions {} padding {} dropout {:a}-{}{}",
                    row, known, width_, depth_, heads_, inner(), positions, padding_, dropout_,
                    causal_ ? known : classes, low_rank_.text() + (causal_ ? " causal" : "")),
        shape);
    net.freeze(low_rank_.is_enabled());
    add_text_embedding(net, "bert.embeddings.",
                       {.vocabulary = known, .channels = width_, .positions = positions, .padding = padding_});
    add_tokens_norm(net, "bert.embeddings.LayerNorm", epsilon);
    add_dropout(net);
    for (std::int64_t i = 0; i < depth_; ++i) {
      const auto name = fmt::format("bert.encoder.layer.{}", i);
      add_block(net, name + ".", i + 1 == depth_ && !causal_);
      net.expose_map(name);
    }
    if (!causal_)
      add_tokens_linear(net, "bert.pooler.dense", {.out = width_, .after = activation::tanh});
    net.freeze(false);
    net.mark_features();
    add_dropout(net);
    if (causal_)
      net.add_token_head("classifier", known);
    else
      net.add_head("classifier", classes, head());
    return net.build();
  }

private:
  static constexpr double epsilon = 1e-12;

  [[nodiscard]] std::int64_t inner() const { return mlp_ > 0 ? mlp_ : 4 * width_; }

  /// Returns the error of model.causal for rows of `row` tokens; "" if there is none.
  [[nodiscard]] std::string causal_error(std::int64_t row) const {
    if (!causal_)
      return {};
    if (padding_ >= 0)
      return fmt::format("bert with model.causal = true predicts every token of a row, and model.padding = {} names a "
                         "padding token; expected -1 and rows without padding",
                         padding_);
    if (row < 2)
      return fmt::format("bert with model.causal = true predicts the second and later tokens of a row, but rows have "
                         "{}; expected at least 2",
                         row);
    if (head().kind != head_kind::linear)
      return "bert with model.causal = true has a linear head for tokens, but the method needs another head; expected "
             "model.causal = false, or a method that averages weights, such as \"fedavg\"";
    return {};
  }

  void add_dropout(network_builder& net) const {
    if (dropout_ > 0.0)
      net.add_dropout(dropout_);
  }

  /// Adds a block of attention and MLP. The last block computes only its first token, because the pooler reads no
  /// other.
  void add_block(network_builder& net, const std::string& name, bool last) const {
    auto x = net.cursor();
    const auto self = name + "attention.self.";
    add_attention_inputs(net, {self + "query", self + "key", self + "value"}, width_);
    add_low_rank(net, x, low_rank_, attention_parts(low_rank_, self, width_));
    add_attention(net, heads_, last ? 1 : net.shape_here().pixels(), padding_, causal_);
    add_tokens_linear(net, name + "attention.output.dense", {.out = width_}, low_rank_, "projection");
    add_dropout(net);
    if (last) {
      const auto attended = net.cursor();
      net.set_cursor(x);
      add_first_token(net);
      x = net.cursor();
      net.set_cursor(attended);
    }
    net.add_sum(x, activation::none);
    add_tokens_norm(net, name + "attention.output.LayerNorm", epsilon);
    const auto h = net.cursor();
    add_tokens_linear(net, name + "intermediate.dense", {.out = inner()}, low_rank_, "mlp");
    add_gelu(net);
    add_tokens_linear(net, name + "output.dense", {.out = width_}, low_rank_, "mlp");
    add_dropout(net);
    net.add_sum(h, activation::none);
    add_tokens_norm(net, name + "output.LayerNorm", epsilon);
  }

  std::int64_t vocabulary_ = 0, width_ = 128, depth_ = 2, heads_ = 2, mlp_ = 0, positions_ = 0, padding_ = -1;
  double dropout_ = 0.0;
  bool causal_ = false;
  low_rank_options low_rank_;
};

const model_registration bert_line{
    {.name = "bert",
     .summary = "transformer for rows of tokens as in the library transformers (Devlin et al. 2019)",
     .make = []() -> std::unique_ptr<model_kind> { return std::make_unique<bert_kind>(); }}};

} // namespace
} // namespace mneme
