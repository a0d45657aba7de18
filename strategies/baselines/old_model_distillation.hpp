/// old_model_distillation: distillation of the previous task's model on its classes (Li and Hoiem 2018, "Learning
/// without Forgetting"), for Fed-LwF, FedIL+ and FedET's enhancer.
#pragma once
#include "strategies/shared/averaging.hpp"
namespace mneme {

/// Section [training] as in the official EWC and LwF code (github.com/Yuqin-G/STSA, aaaa006), without weight decay.
inline constexpr const char* public_training = "[training]\noptimizer = \"sgd\"\nepochs = 2\nbatch = 128\n"
                                               "learning_rate = 0.01\nmomentum = 0.9\naugment = "
                                               "\"crop-flip-jitter\"\n";

/// Weight (lambda) and temperature T of the distillation.
struct distillation_options {
  double weight = 3.0, temperature = 2.0;
};

/// CE over the classes from `old_classes` on (eq. 1) + weight KD over the classes before them (eqs. 2, 3),
///     KD = -sum_c softmax(z_old / T)_c log softmax(z / T)_c,
/// without a factor T^2. Reads the teacher's logits of the old classes.
[[nodiscard]] loss_ref distillation_objective(std::int64_t old_classes, const distillation_options& options);

/// Adds the teacher in `in.extra` and the distillation loss to `job`. Does nothing without a teacher or without old
/// classes.
void distill_old_classes(train_job& job, const broadcast& in, const distillation_options& options);

/// Averages uploads. From task 2 on, sends the model at the start of the task as broadcast::extra, in every round,
/// because any client may participate for the first time.
class teacher_server : public averaging_server {
public:
  using averaging_server::averaging_server;
  task<task_plan> open_task(server_context& ctx, const round_info& info) override;
  broadcast open_round(const round_info& info) override;
  void persist(archive& state) override;

private:
  tensors_ref teacher_; // null in the first task
};

} // namespace mneme
