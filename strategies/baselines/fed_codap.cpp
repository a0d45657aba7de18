// Fed-CODAP: J. Smith et al., "CODA-Prompt: COntinual Decomposed Attention-based Prompting for Rehearsal-Free Continual
// Learning", CVPR 2023, averaged by FedAvg (as in STSA's comparison). In some blocks, the prompt of an image is
//     p = sum_m alpha_m P_m,  alpha_m = cos(q(x) * A_m, K_m)   (eqs. 3 to 6),
// summed over the components of all tasks so far; those of earlier tasks are frozen (section 4.3). q(x) is the class
// token of the frozen transformer without prompts. A client minimizes
//     L = CE over the task's classes + penalty sum over blocks of mean((X X^T - I)^2), X = K, A, P   (eqs. 7 and 8).
//
// The official code draws the components of a task orthogonal to all earlier ones by Gram-Schmidt. The rate follows a
// cosine over the epochs, almost to zero.
//
// Ours: the server draws the components, so all clients start a task with the same ones. The rate is constant over the
// epochs of a round. The last short batch of an epoch is used. The server averages the uploads, so components do not
// keep unit length.
#include "strategies/baselines/prompting.hpp"
namespace mneme::fed_codap_method {
namespace {

class fed_codap final : public prompting_method {
public:
  void keys(key_table& table) override {
    component_keys(table, shape_);
    table.number("penalty", penalty_, {.low = 0.0},
                 "Weight of the orthogonality penalty on components (eq. 7); the paper has 0.1, the official code 0.");
  }
  std::vector<preset> presets() const override {
    return {stsa_preset(),
            {"official", "CODA-Prompt's official code for CIFAR-100, federated",
             "[training]\nepochs = 20\nbatch = 128\noptimizer = \"adam\"\nlearning_rate = 1e-3\n"},
            {"paper", "with the paper's weight of the penalty",
             "[strategy]\npenalty = 0.1\n[training]\nepochs = 20\nbatch = 128\noptimizer = \"adam\"\n"
             "learning_rate = 1e-3\n"}};
  }

protected:
  prompt_shape prompts() const override { return shape_; }
  loss_ref objective() const override {
    return penalty_ > 0.0 ? prompted_objective("penalty", penalty_) : cross_entropy_objective();
  }
  void adjust(train_job& job, const broadcast& /*in*/) const override {
    if (penalty_ > 0.0)
      job.options.maps = {"penalty"};
  }

private:
  prompt_shape shape_{.form = prompt_form::components, .blocks = {0, 1, 2, 3, 4}};
  double penalty_ = 0.0;
};

const strategy_registration line{
    {.name = "fed-codap",
     .summary = "prompts summed from components of all tasks, averaged (CODA-Prompt, Smith et al. 2023)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fed_codap>(); }}};

} // namespace
} // namespace mneme::fed_codap_method
