/// prompting: FedAvg of a head and of prompts in the attention of a frozen vision transformer. Base of Fed-DualP,
/// Fed-CODAP and Fed-CPrompt.
#pragma once
#include "runtime/models/prompted_vit.hpp"
#include "strategies/shared/averaging.hpp"
#include "strategies/shared/row_losses.hpp"
namespace mneme {

/// Replaces the last `fresh` rows of `rows` [k, ..] by new draws from N(0, 1). The projections onto all rows before it
/// are subtracted from each draw, which is then divided by its length. This is classical Gram-Schmidt, as in
/// CODA-Prompt's official code. The other rows keep their values, which need not have length 1. Returns [k, ..].
/// @pre a row has at least k elements
[[nodiscard]] at::Tensor with_orthogonal_rows(const at::Tensor& rows, std::int64_t fresh, rng_stream& draw);

/// Returns an error if a task repeats classes of an earlier task. @param part subject and verb for the error text, such
/// as "prompts are"
[[nodiscard]] diagnostics validate_class_repeats(const method_setup& setup, const char* part);

/// Cross-entropy over the task's classes, plus `weight` times the mean over rows of the net's map `map`
/// (prompted_vit.hpp).
[[nodiscard]] loss_ref prompted_objective(const char* map, double weight);

/// The preset "stsa" of the three methods.
[[nodiscard]] preset stsa_preset();

/// Averages the trained tensors and draws the prompts: components at the start of each task, slots at the start of the
/// run.
class prompting_server final : public averaging_server {
public:
  prompting_server(const method_setup& setup, std::shared_ptr<const prompted_vit> net)
      : averaging_server(setup), net_(std::move(net)), seed_(setup.seed) {}
  task<task_plan> open_task(server_context& ctx, const round_info& info) override;
  void persist(archive& state) override {
    averaging_server::persist(state);
    state(opened_);
  }

private:
  [[nodiscard]] rng_stream stream_of(std::size_t info) const;
  void draw_components(at::Tensor& flat) const;
  void draw_slots(at::Tensor& flat) const;

  std::shared_ptr<const prompted_vit> net_;
  std::uint64_t seed_;
  std::int64_t opened_ = 0; // number of opened tasks
};

/// The client half. It trains prompts and head from the broadcast, with a loss over the classes of the task.
class prompting_method : public averaging_method {
public:
  [[nodiscard]] method_needs needs() const override;
  [[nodiscard]] diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override;

protected:
  [[nodiscard]] virtual prompt_shape prompts() const = 0;
  [[nodiscard]] class_range covered_classes(const round_info& info) const override { return info.current_classes; }
  /// Declares the keys for prompted blocks and prompt length.
  static void block_keys(key_table& table, prompt_shape& into);
  /// Declares the keys of block_keys() and those of components.
  static void component_keys(key_table& table, prompt_shape& into);

private:
  std::shared_ptr<const prompted_vit> net_;
};

} // namespace mneme
