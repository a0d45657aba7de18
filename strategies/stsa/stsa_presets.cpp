#include "strategies/stsa/stsa_presets.hpp"
namespace mneme {

std::vector<preset> stsa_presets() {
  const std::string residual = R"([strategy]
adaptation_rounds = 100
projection_width = 5000
ridge = 1e4
dummies = 50
[training]
epochs = 2
batch = 128
learning_rate = 0.04
schedule = "cosine"
momentum = 0.9
weight_decay = 5e-4
augment = "crop-flip-jitter"
)";
  const std::string paper = "readout = \"linear\"\nkappa = \"total\"\nclamp_b = false\n";
  const std::string official = "readout = \"cosine\"\nkappa = \"total\"\nclamp_b = true\n";
  const std::string after_transformer = R"([strategy]
adaptation_rounds = 10
projection_width = 1250
ridge = 1e6
dummies = 10
[training]
epochs = 2
batch = 128
)";
  const std::string transformer = after_transformer + R"(learning_rate = 0.2
schedule = "cosine"
momentum = 0.9
weight_decay = 5e-4
)";
  const std::string adapted = after_transformer + "optimizer = \"adam\"\n";
  const auto with = [](std::string base, const std::string& keys) { return base.insert(base.find('\n') + 1, keys); };
  return {
      {"paper", "ResNet-18 as in the paper, with linear readout and kappa over all dummy clients",
       with(residual, paper)},
      {"paper-vit", "ViT as in the paper, with 1,250 random features, ridge 1e6 and 10 dummy clients",
       with(transformer, paper)},
      {"official", "ResNet-18 as in the official code, with cosine readout and negative coefficients clamped",
       with(residual, official)},
      {"official-vit",
       "ViT as in the official main.py, with cosine readout and negative coefficients clamped, but with the paper's "
       "10 dummy clients (main.py has 5)",
       with(transformer, official)},
      {"paper-pilora", "PILoRA adapts the net in task 1, before the statistics (Table 3)",
       with(adapted, "adapter = \"pilora\"\n" + paper) + "learning_rate = 2e-3\nweight_decay = 1e-5\n"},
      {"paper-cprompt", "Fed-CPrompt adapts the net in task 1, before the statistics (Table 3)",
       with(adapted, "adapter = \"fed-cprompt\"\n" + paper) + "learning_rate = 1e-3\n"}};
}

} // namespace mneme
