/// prompting: FedAvg of prompts in the attention of a frozen vision transformer, and of a head; the parts that
/// Fed-DualP, Fed-CODAP and Fed-CPrompt share.
#pragma once
#include "runtime/models/prompted_vit.hpp"
#include "strategies/shared/averaging.hpp"
#include "strategies/shared/row_losses.hpp"
namespace mneme {

/// Draws the last `fresh` of `rows` [k, ..] anew: each is drawn from N(0, 1), loses its projections onto all rows
/// before it, and is divided by its length (classical Gram-Schmidt, as in CODA-Prompt's public code). The rows before
/// are kept as they are, of whatever length training has left them.
/// @pre a row has k elements or more
[[nodiscard]] at::Tensor with_orthogonal_rows(const at::Tensor& rows, std::int64_t fresh, rng_stream& draw);

/// What is wrong where a task brings classes of an earlier one again. @param part "prompts are", of a task
[[nodiscard]] diagnostics repeated_classes(const method_setup& setup, const char* part);

/// Cross-entropy of the task's classes, and a map of the net's (prompted_vit.hpp), times a weight, as a mean over rows.
[[nodiscard]] loss_ref prompted_objective(const char* map, double weight);

/// The preset "stsa" of each of the three.
[[nodiscard]] preset stsa_preset();

/// The server averages what is learnt, and draws prompts: components at the start of each task, slots at the run's.
class prompting_server final : public averaging_server {
public:
  prompting_server(const method_setup& setup, std::shared_ptr<const prompted_vit> net)
      : averaging_server(setup), net_(std::move(net)), seed_(setup.seed) {}
  task<task_plan> open_task(server_context& ctx, const round_place& place) override;
  void persist(archive& state) override {
    averaging_server::persist(state);
    state(opened_);
  }

private:
  [[nodiscard]] rng_stream stream_of(std::size_t place) const;
  void draw_components(at::Tensor& flat) const;
  void draw_slots(at::Tensor& flat) const;

  std::shared_ptr<const prompted_vit> net_;
  std::uint64_t seed_;
  std::int64_t opened_ = 0; // tasks
};

/// The client half: local training of prompts and head from the broadcast ones, by the loss over the task's classes.
class prompting_method : public averaging_method {
public:
  [[nodiscard]] method_needs needs() const override;
  [[nodiscard]] diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override;

protected:
  [[nodiscard]] virtual prompt_shape prompts() const = 0;
  [[nodiscard]] class_range covered(const round_place& place) const override { return place.current; }
  /// Blocks, and the length of their prompts.
  static void block_keys(key_table& table, prompt_shape& into);
  /// The same, and what components are.
  static void component_keys(key_table& table, prompt_shape& into);

private:
  std::shared_ptr<const prompted_vit> net_;
};

} // namespace mneme
