#include "runtime/models/token_layers.hpp"
#include "runtime/options/keys.hpp"
#include <fmt/format.h>
namespace mneme {
namespace {

/// The character model of LEAF's Shakespeare (Caldas et al. 2018): token embeddings of width 8, two LSTM layers of
/// width 256, and a head that reads the last token's hidden state. Parameters have the names of PyTorch's Embedding,
/// LSTM and Linear.
class lstm_kind final : public model_kind {
public:
  void keys(key_table& table) override {
    table.integer("vocabulary", vocabulary_, {.low = 0, .high = 16'777'216},
                  "Vocabulary size of the net; 0: that of the data set.");
    table.integer("embedding", embedding_, {.low = 1, .high = 65'536}, "Width of a token's vector.");
    table.integer("hidden", hidden_, {.low = 1, .high = 65'536}, "Hidden units of a layer.");
    table.integer("layers", layers_, {.low = 1, .high = 64}, "Number of LSTM layers.");
    head_keys(table);
  }
  [[nodiscard]] bool reads_tokens() const override { return true; }

  [[nodiscard]] tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3> shape,
                                                           std::int64_t classes) const override {
    const auto known = vocabulary_ > 0 ? vocabulary_ : tokens();
    if (shape[0] != 1 || shape[1] != 1 || known == 0)
      return tl::unexpected(
          fmt::format("lstm reads rows of tokens, but these data have images of {} x {} x {}; mlp accepts any shape",
                      shape[0], shape[1], shape[2]));
    if (known < tokens())
      return tl::unexpected(fmt::format("lstm has a vocabulary of {} tokens, but the data set has {}; expected a "
                                        "model.vocabulary of at least that, or 0 for the data set's",
                                        known, tokens()));
    network_builder net(
        fmt::format("lstm {} tokens of {}, {}-{}x{}-{}", shape[2], known, embedding_, layers_, hidden_, classes),
        shape);
    add_token_embedding(net, "embedding", known, embedding_);
    for (std::int64_t i = 0; i < layers_; ++i) {
      add_lstm(net, "lstm", i, hidden_);
      net.expose_map(fmt::format("lstm{}", i + 1));
    }
    add_last_token(net);
    net.add_head("fc", classes, head());
    return net.build();
  }

private:
  std::int64_t vocabulary_ = 0, embedding_ = 8, hidden_ = 256, layers_ = 2;
};

const model_registration lstm_line{
    {.name = "lstm",
     .summary = "character model of LEAF's Shakespeare, for rows of tokens (Caldas et al. 2018)",
     .make = []() -> std::unique_ptr<model_kind> { return std::make_unique<lstm_kind>(); }}};

} // namespace
} // namespace mneme
