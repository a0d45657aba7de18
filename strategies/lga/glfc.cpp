// GLFC: global-local forgetting compensation (J. Dong, L. Wang, Z. Fang, G. Sun, S. Xu, X. Wang and Q. Zhu, "Federated
// Class-Incremental Learning", CVPR 2022). Rows are weighted by the mean gradients of old and of new rows (eqs. 2-4).
// The old model's probabilities replace the labels of old classes (eq. 5). From the first round on, a proxy scores
// global models on images that it reconstructs from the gradients of prototypes.
//
// The official code (github.com/conditionWang/FCIL, commit 11e161a, without a license) uses sigmoid losses. It never
// resets its best score (`best_reset`), so one model can remain the teacher for many tasks. New clients are drawn into
// cohorts.
//
// Ours: GLFC is the predecessor of LGA; lga.cpp describes our choices. Preset "paper" follows the paper. Preset
// "official" follows the official code without its bugs, and "released" includes the bugs that change results.
#include "strategies/lga/gradient_compensation.hpp"
#include <ATen/ATen.h>
namespace mneme {

/// |G_i| divided by its mean over old rows, or over new rows (eqs. 2-4). G = P_y - 1 is called V in lga.cpp.
at::Tensor old_new_weights(const at::Tensor& magnitudes, const at::Tensor& groups) {
  return divide_by_mean(magnitudes, groups == -1) + divide_by_mean(magnitudes, groups >= 0);
}

namespace {

enum class glfc_form : std::uint8_t { printed, released };

class glfc final : public gradient_compensation_method {
public:
  glfc() {
    options_.exponent = exponent_rule::one;
    options_.proxy.augments = false;
    options_.proxy.first_scored = 0;
  }
  void keys(key_table& table) override {
    table.choice("losses", losses_, {{"paper", glfc_form::printed}, {"official", glfc_form::released}},
                 "Softmax losses as in the paper, or sigmoid losses.");
    shared_keys(table, options_);
  }
  std::vector<preset> presets() const override {
    const std::string released = "losses = \"official\"\nrates = \"official\"\nreconstruction_rate = 0.1\n"
                                 "weighting = \"uniform\"\n" +
                                 std::string(released_training);
    return {{.name = "paper",
             .meaning = "losses, proxy, groups and perturbation as in the paper; rate 0.1 with momentum 0.9 is ours "
                        "(paper: 2.0), batches and augmentation are the official code's",
             .toml = "[strategy]\nlosses = \"paper\"\nimages_per_gradient = 1\nold_clients = \"exemplars\"\nregroup = "
                     "\"round\"\n"
                     "perturbation = \"latent\"\nweighting = \"uniform\"\n" +
                     std::string(printed_training)},
            {.name = "official",
             .meaning = "the official code with its learning rates, without its bugs",
             .toml = "[strategy]\n" + released},
            {.name = "released",
             .meaning =
                 "the official code with the bugs that change results: exemplars that are selected twice, a best score "
                 "that is never reset",
             .toml = "[strategy]\nexemplars = \"duplicates\"\nbest_reset = \"never\"\n" + released}};
  }

protected:
  gradient_compensation_options options() const override {
    auto options = options_;
    // 0.5 L_GC + 0.5 L_RD (eq. 6). The distillation term L_RD uses mixed labels (eq. 5) and gives all rows weight 1.
    options.terms = {.likelihood =
                         losses_ == glfc_form::printed ? class_likelihood::softmax : class_likelihood::sigmoid,
                     .weighting = gradient_weighting::old_new,
                     .distillation = distillation_kind::mixed,
                     .weighs_distillation = false,
                     .label_factor = 0.5,
                     .distillation_factor = 0.5};
    options.threshold_included = losses_ == glfc_form::printed;
    return options;
  }

private:
  gradient_compensation_options options_;
  glfc_form losses_ = glfc_form::printed;
};

const strategy_registration glfc_line{
    {.name = "glfc",
     .summary = "global-local forgetting compensation with a proxy server (GLFC, Dong et al. 2022, CVPR)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<glfc>(); }}};

} // namespace
} // namespace mneme
