// LGA: local-global anti-forgetting (Dong, Li, Cong, Sun, Zhang, Van Gool 2023, "No One Left Behind: Real-World
// Federated Class-Incremental Learning", TPAMI). Against local forgetting a client weighs rows by the gradients of
// their task (category-balanced loss, eqs. 3-6) and learns from an old model (semantic distillation, eqs. 7-9);
// against global forgetting a proxy reconstructs prototypes from gradients, scores global models on noisy copies of
// their features (eqs. 11-14), and sends clients the best model of the task before and of the latest one.
//
// What paper and released program do otherwise is a key, with presets for both. Ours, where neither can be followed:
// - the KL of eq. 9 is infinite, because labels have zeros: here it is a cross-entropy against the mixed label;
// - prototypes are perturbed as released (descent on pixels), not in latent space;
// - the entropy of a client is that of its rows without augmentation, and scores are of images without it;
// - the noise scale that is released comes from training images; here it comes from reconstructions;
// - gradients that come within the first rounds of a task belong to it, so that clients may find out one by one.
#include "strategies/lga/compensating.hpp"
namespace mneme {
namespace {

enum class lga_form : std::uint8_t {
  printed,  ///< Softmax, rows weighed by the mean of their task, exponents from the client's own classes.
  released, ///< Sigmoids, cumulative weights within [0.5, 5], exponents from the number of tasks.
};

class lga final : public compensating_method {
public:
  void keys(key_table& table) override {
    table.choice("losses", losses_, {{"paper", lga_form::printed}, {"official", lga_form::released}},
                 "Softmax losses with weights per task, as printed, or sigmoid losses with cumulative weights.");
    shared_keys(table, with_);
    table.choice("noise", noise_, {{"paper", lga_form::printed}, {"official", lga_form::released}},
                 "Noise on features, and its scale: as printed (eqs. 11, 12) or as released.");
    table.flag("cbl", category_balanced_, "The labels' loss weighs rows; else it is plain.");
    table.flag("sdl", semantic_, "Distillation is semantic; else iCaRL's.");
    table.flag("psr", with_.proxy.reconstructs, "The proxy reconstructs prototypes; else any old model is taken.");
    table.flag("sbm", with_.proxy.selects, "The proxy selects the best model; else the last of the task is taken.");
    table.flag("ssa", with_.proxy.augments, "Models are scored on noisy copies of features; else on features.");
    table.flag("npb", with_.perturbs, "Prototypes are perturbed before they are encoded.");
  }
  std::vector<preset> presets() const override {
    return {{.name = "paper",
             .meaning = "the losses, weights and proxy as printed, momentum 0.9 at rate 0.1",
             .toml = "[strategy]\nlosses = \"paper\"\nnoise = \"paper\"\nexemplars = \"rank\"\nproxy_init = 0\n"
                     "weighting = \"uniform\"\n"
                     "[training]\nlearning_rate = 0.1\nmomentum = 0.9\nweight_decay = 1e-5\n"},
            {.name = "official",
             .meaning = "what the released program does, with its learning rates, but for its bugs",
             .toml = "[strategy]\nlosses = \"official\"\nnoise = \"official\"\nexemplars = \"greedy\"\n"
                     "rates = \"code-quirk\"\nreconstruction_rate = 0.1\nproxy_init = 6\nweighting = \"uniform\"\n"
                     "[training]\nepochs = 20\nbatch = 128\nlearning_rate = 2.0\nweight_decay = 1e-5\n"
                     "augment = \"crop-flip-jitter\"\n"}};
  }

protected:
  compensating_options options() const override {
    auto made = with_;
    const bool printed = losses_ == lga_form::printed;
    made.terms = {.likelihood = printed ? class_likelihood::softmax : class_likelihood::sigmoid,
                  .weighting = printed ? gradient_weighting::per_task : gradient_weighting::cumulative,
                  .distillation = semantic_ ? old_knowledge::mixed : old_knowledge::icarl,
                  .weighs_labels = category_balanced_,
                  .weighs_distillation = semantic_};
    made.exponent = printed ? exponent_rule::own_classes : exponent_rule::tasks;
    made.threshold_included = printed;
    made.proxy.noise_as_printed = made.proxy.running_scale = noise_ == lga_form::printed;
    return made;
  }

private:
  compensating_options with_;
  lga_form losses_ = lga_form::printed, noise_ = lga_form::printed;
  bool category_balanced_ = true, semantic_ = true;
};

const strategy_registration lga_line{
    {.name = "lga",
     .summary = "local-global anti-forgetting with a proxy server (LGA, Dong et al. 2023, TPAMI)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<lga>(); }}};

} // namespace
} // namespace mneme
