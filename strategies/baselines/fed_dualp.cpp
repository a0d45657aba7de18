// Fed-DualP: Z. Wang et al., "DualPrompt: Complementary Prompting for Rehearsal-free Continual Learning", ECCV 2022,
// averaged by FedAvg (as in STSA's comparison), as prefix tuning (section 4.3). Some blocks read a prompt that all
// tasks share (G), others a prompt of the task (E), which has a slot t with key k_t. In training, a client uses the
// slot of its task and minimizes
//     L = CE over the task's classes + match sum over blocks of (1 - cos(q(x), k_t))   (eq. 7).
// In tests, each block reads the slot whose key is closest to q(x), the class token of the frozen transformer (eq. 6).
//
// Official code: CODA-Prompt's version sums the match term over rows. Fed-CPrompt's version omits it, so its keys are
// never trained (match = 0).
//
// Ours: the match term is a mean over rows. Only the keys depend on it, so the factor between sum and mean has no
// effect with Adam. In tests, only the slots of tasks so far are candidates (all_slots = true: all slots). The learning
// rate is constant.
#include "strategies/baselines/prompting.hpp"
namespace mneme::fed_dualp_method {
namespace {

class fed_dualp final : public prompting_method {
public:
  void keys(key_table& table) override {
    block_keys(table, shape_);
    table.integers("general_blocks", shape_.general, {.low = 0, .high = 199},
                   "Blocks whose attention reads the shared prompt.");
    table.integer("general_length", shape_.general_length, {.low = 2, .high = 1024},
                  "Number of vectors of a shared prompt, an even number.");
    table.number("match", match_, {.low = 0.0},
                 "Weight of the loss that trains keys; 0: keys keep their random initial values.");
    table.flag("all_slots", shape_.all_slots,
               "Select prompts in tests from all slots, including those of tasks that have not begun.");
  }
  std::vector<preset> presets() const override {
    return {stsa_preset(),
            {"official", "DualPrompt in CODA-Prompt's official code for CIFAR-100, which selects from all slots",
             "[strategy]\nall_slots = true\n[training]\nepochs = 20\nbatch = 128\noptimizer = \"adam\"\n"
             "learning_rate = 1e-3\n"},
            {"untrained-keys", "DualPrompt in Fed-CPrompt's official code, whose keys are not trained",
             "[strategy]\nmatch = 0.0\nall_slots = true\n[training]\nepochs = 5\nbatch = 128\noptimizer = \"adam\"\n"
             "learning_rate = 1e-4\n"}};
  }

protected:
  prompt_shape prompts() const override { return shape_; }
  loss_ref objective() const override {
    return match_ > 0.0 ? prompted_objective("match", match_) : cross_entropy_objective();
  }
  void adjust(train_job& job, const broadcast& /*in*/) const override {
    if (match_ > 0.0)
      job.options.maps = {"match"};
  }

private:
  prompt_shape shape_{
      .form = prompt_form::slots, .blocks = {2, 3, 4}, .general = {0, 1}, .length = 20, .general_length = 6};
  double match_ = 1.0;
};

const strategy_registration line{
    {.name = "fed-dualp",
     .summary = "a prompt per task and a shared one in the attention of a frozen net (DualPrompt, Wang et al. 2022)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fed_dualp>(); }}};

} // namespace
} // namespace mneme::fed_dualp_method
