/// node_gateway: actor that carries messages between the run and the workers of a node.
#pragma once
#include "actors/nodes/node_messages.hpp"
#include "actors/nodes/tensor_caches.hpp"
#include "actors/protocol/interfaces.hpp"
#include "actors/protocol/run_context.hpp"
#include <functional>
namespace mneme {

/// Operations on the connection to the run.
struct node_gateway_hooks {
  std::function<void(archive)> send{};
  std::function<void(std::size_t bytes)> consumed{}; ///< Reports that a message of this size was handled.
  std::function<void(std::string reason)> fail{};    ///< Closes the connection, because the run violates the protocol.
};

class node_gateway_state {
public:
  static constexpr const char* name = "mneme.uplink";
  node_gateway_state(node_gateway_actor::pointer self, run_context_ref context, node_gateway_hooks hooks);
  node_gateway_actor::behavior_type make_behavior();

private:
  void report(wave_report& wave);
  void take(const node_frame& in);
  void take(node_message kind, archive& content);
  void check(const start_rounds& wave) const;
  template <class Command>
  void forward_command(Command command);
  void wake_later();

  node_gateway_actor::pointer self_;
  run_context_ref context_;
  node_gateway_hooks hooks_;
  std::vector<worker_actor> workers_;
  node_tensor_cache tensors_;
  std::uint64_t messages_handled_ = 0;
  bool wakes_later_ = false;
};

} // namespace mneme
