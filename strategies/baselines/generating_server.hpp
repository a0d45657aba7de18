/// generating_server: FedAvg's server plus an image generator that is trained through the global model, without data.
#pragma once
#include "strategies/shared/averaging.hpp"
namespace mneme {

/// Base class of the servers of TARGET and MFCL. Before each task except the first, a program trains the generator.
/// Every broadcast of the task contains the part of the result that clients need.
class generating_server : public averaging_server {
public:
  explicit generating_server(const method_setup& setup) : averaging_server(setup), setup_(setup) {}

  task<task_plan> open_task(server_context& ctx, const round_info& info) override;
  broadcast open_round(const round_info& info) override;
  [[nodiscard]] std::map<std::string, double> summary_metrics() const override;
  void persist(archive& state) override;

protected:
  [[nodiscard]] const method_setup& setup() const { return setup_; }
  /// Returns the program that trains the generator. Its result must contain "objective", [] or [rounds].
  [[nodiscard]] virtual program_job generation(const round_info& info) const = 0;
  /// Selects the tensors that clients receive from the program's result.
  virtual tensors_ref replay_of(const tensor_map& generated) = 0;

private:
  method_setup setup_;
  tensors_ref replay_{};   // null in the first task
  double objective_ = 0.0; // lowest objective of the last generation
};

} // namespace mneme
