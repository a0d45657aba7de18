#include "runtime/models/embedding_model.hpp"
#include "runtime/options/keys.hpp"
namespace mneme {
namespace {

/// The encoders and the classifier of "Variational Embedding Rehearsal" (arXiv 2110.09695). The paper does not state
/// the channels, the padding and the hidden widths: they are keys with mneme's defaults.
class embedding_model_kind final : public model_kind {
public:
  explicit embedding_model_kind(bool normal) { shape_.normal = normal; }

  void keys(key_table& table) override {
    table.integers("filters", shape_.filters, {.low = 1, .high = 4'096},
                   "Channels of the encoder's 5x5 convolutions, each followed by 2x2 max-pooling.");
    table.integer("padding", shape_.padding, {.low = 0, .high = 2}, "Padding of the convolutions in pixels.");
    table.integers("hidden", shape_.hidden, {.low = 1, .high = 65'536}, "Widths of the encoder's linear layers.");
    table.integer("embedding", shape_.embedding, {.low = 1, .high = 65'536}, "Width of an embedding.");
    table.integers("classifier", shape_.classifier, {.low = 1, .high = 65'536},
                   "Widths of the classifier's hidden layers.");
  }

  [[nodiscard]] tl::expected<model_ref, std::string> build(std::array<std::int64_t, 3> shape,
                                                           std::int64_t classes) const override {
    if (auto reason = embedding_model::shape_error(shape_, shape); !reason.empty())
      return tl::unexpected((shape_.normal ? "vee: " : "ebr: ") + reason);
    return std::make_shared<embedding_model>(shape_, shape, classes);
  }

private:
  embedding_shape shape_;
};

const model_registration vee{
    {.name = "vee",
     .summary = "encoder to normal embeddings of 256 and a classifier of them (arXiv 2110.09695)",
     .make = []() -> std::unique_ptr<model_kind> { return std::make_unique<embedding_model_kind>(true); }}};
const model_registration ebr{
    {.name = "ebr",
     .summary = "the same encoder with embeddings that are points, and its classifier",
     .make = []() -> std::unique_ptr<model_kind> { return std::make_unique<embedding_model_kind>(false); }}};

} // namespace
} // namespace mneme
