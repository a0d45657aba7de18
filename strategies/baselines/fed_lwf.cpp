// Fed-LwF: Z. Li and D. Hoiem, "Learning without Forgetting", 2018, eqs. 1 to 3, averaged by FedAvg (as in the
// comparisons of TARGET and STSA). For task t > 1, a client minimizes
//     CE over the classes of the task (eq. 1) + lambda KD,
//     KD = -sum_c softmax(z_old / T)_c log softmax(z / T)_c over the classes of earlier tasks (eqs. 2, 3),
// on the same augmented rows.
//
// The official code does not multiply KD by T^2, and neither do we.
//
// Ours: the previous model is sent in every round, because a client may participate for the first time. A client whose
// task has no earlier classes (the first task, or tasks with the same classes) trains as in FedAvg.
#include "strategies/baselines/old_model_distillation.hpp"
#include "strategies/shared/training_keys.hpp"
namespace mneme {
namespace {

class fed_lwf final : public averaging_method {
public:
  void keys(key_table& table) override {
    table.number("distillation_weight", options_.weight, {.low = 0.0}, "lambda: weight of the distillation loss.");
    table.number("temperature", options_.temperature, {.low = 0.0, .open_low = true},
                 "T: temperature of the distillation loss.");
  }
  std::vector<preset> presets() const override {
    return {{"official", "LwF in STSA's official code (github.com/Yuqin-G/STSA, aaaa006)",
             "[strategy]\ndistillation_weight = 3.0\ntemperature = 2.0\nweighting = \"uniform\"\n" +
                 std::string(public_training) + "weight_decay = 5e-4\n"}};
  }
  diagnostics check(const method_setup& setup) const override {
    auto errors = averaging_method::check(setup);
    append(errors, reject_token_losses(setup, "fed-lwf distills class scores of rows"));
    return errors;
  }
  std::unique_ptr<server_half> make_server() const override { return std::make_unique<teacher_server>(setup()); }

protected:
  void adjust(train_job& job, const broadcast& in) const override { distill_old_classes(job, in, options_); }

private:
  distillation_options options_;
};

const strategy_registration fed_lwf_line{
    {.name = "fed-lwf",
     .summary = "FedAvg with distillation from the previous task's model (Li and Hoiem 2018, LwF)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fed_lwf>(); }}};

} // namespace
} // namespace mneme
