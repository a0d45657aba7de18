/// generating_server: FedAvg's server with a generator of images that learns through the global model, without data.
#pragma once
#include "strategies/shared/averaging.hpp"
namespace mneme {

/// TARGET's and MFCL's: before each task but the first a program trains the generator, and clients of the task receive
/// what came of it with every broadcast.
class generating_server : public averaging_server {
public:
  explicit generating_server(const method_setup& setup) : averaging_server(setup), setup_(setup) {}

  task<task_plan> open_task(server_context& ctx, const round_place& place) override;
  broadcast open_round(const round_place& place) override;
  [[nodiscard]] std::map<std::string, double> figures() const override;
  void persist(archive& state) override;

protected:
  [[nodiscard]] const method_setup& setup() const { return setup_; }
  /// A program whose results have "objective", of one round or of several.
  [[nodiscard]] virtual program_job generation(const round_place& place) const = 0;
  /// What clients receive of the program's results.
  virtual tensors_ref replay_of(const tensor_map& generated) = 0;

private:
  method_setup setup_;
  tensors_ref replay_{};   // null in task 1
  double objective_ = 0.0; // the least, of the last task
};

} // namespace mneme
