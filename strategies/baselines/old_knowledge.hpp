/// old_knowledge: clients are held to what the model of the task before says of its classes (Li and Hoiem 2018,
/// "Learning without Forgetting"), as Fed-LwF, FedIL+ and FedET's enhancers are.
#pragma once
#include "strategies/shared/averaging.hpp"
namespace mneme {

/// [training] of the public programs of EWC and LwF (github.com/Yuqin-G/STSA, aaaa006), but for the weight decay.
inline constexpr const char* public_training = "[training]\noptimizer = \"sgd\"\nepochs = 2\nbatch = 128\n"
                                               "learning_rate = 0.01\nmomentum = 0.9\naugment = "
                                               "\"crop-flip-jitter\"\n";

struct distillation_options {
  double weight = 3.0, temperature = 2.0;
};

/// CE over the classes behind the `old_classes` first (eq. 1) + weight KD over these (eqs. 2, 3),
///     KD = -sum_c softmax(z_old / T)_c log softmax(z / T)_c,
/// which is not multiplied by T^2. Reads the teacher's logits of the old classes.
[[nodiscard]] loss_ref distillation_objective(std::int64_t old_classes, const distillation_options& with);

/// Lets `job` be taught by the model in `in.extra`; where there is none, or no class before those of the task, nothing
/// changes: there is nothing to be asked.
void teach_old_classes(train_job& job, const broadcast& in, const distillation_options& with);

/// Averages, and sends the model that the task began with in broadcast::extra, from task 2 on: with every round,
/// because anybody may take part for the first time.
class teaching_server : public averaging_server {
public:
  using averaging_server::averaging_server;
  task<task_plan> open_task(server_context& ctx, const round_place& place) override;
  broadcast open_round(const round_place& place) override;
  void persist(archive& state) override;

private:
  tensors_ref teacher_; // null in task 1
};

} // namespace mneme
