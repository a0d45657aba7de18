/// compensating: what GLFC and LGA have in common: clients that find out by themselves that a task has begun, keep
/// exemplars of the one before, weigh rows by how much they are forgotten, and learn from an old model that a proxy
/// chooses.
#pragma once
#include "strategies/lga/forgetting_losses.hpp"
#include "strategies/lga/prototype_proxy.hpp"
#include "strategies/lga/round_rate.hpp"
#include "strategies/shared/averaging.hpp"
#include "strategies/shared/exemplar_selection.hpp"
namespace mneme {

/// Where the exponent a of |V|^a comes from.
enum class exponent_rule : std::uint8_t {
  own_classes, ///< C_old / (C_old + C_new), counted at the client.
  tasks,       ///< t / (t + 1), where t tasks were before (as released).
  one,
};

struct compensating_options {
  forgetting_terms terms{};
  exponent_rule exponent = exponent_rule::own_classes;
  double threshold = 1.2;          ///< Nats by which the entropy has to rise.
  bool threshold_included = true;  ///< A rise of exactly that is enough (as printed).
  std::int64_t memory_rows = 2000; ///< Exemplars of a client.
  exemplar_choice choice = exemplar_choice::greedy;
  rate_schedule rates = rate_schedule::scenario;
  bool perturbs = true; ///< Prototypes are moved before they are encoded.
  proxy_options proxy{};
};

class compensating_method : public averaging_method {
public:
  [[nodiscard]] method_needs needs() const override {
    return {.round_barrier = true, .has_proxy = true, .blind_clients = true};
  }
  [[nodiscard]] diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override;
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  task<client_result> client_look(client_context& ctx, const broadcast& in) const override;
  [[nodiscard]] std::unique_ptr<server_half> make_server() const override;
  [[nodiscard]] std::unique_ptr<proxy_half> make_proxy() const override;

protected:
  /// The options that the method's keys come to.
  [[nodiscard]] virtual compensating_options options() const = 0;
  /// Binds the keys that both methods have.
  static void shared_keys(key_table& table, compensating_options& to);
  [[nodiscard]] loss_ref objective() const override { return forgetting_objective(options().terms); }

private:
  struct client_memory;
  struct found;
  [[nodiscard]] task<found> look(client_context& ctx, const broadcast& in, tensors_ref weights) const;
  [[nodiscard]] train_job training(const client_context& ctx, const broadcast& in, const found& after) const;
  [[nodiscard]] sample_view prototypes_of(const client_context& ctx, const at::Tensor& features) const;
  [[nodiscard]] std::int64_t task_of_class(std::int64_t label) const;

  compensating_options with_;
  std::shared_ptr<const shared_encoder> known_;
  program_ref prototypes_;
};

} // namespace mneme
