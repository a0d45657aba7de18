/// node_list: the nodes of a run whose names may change while it goes on.
#pragma once
#include "actors/nodes/node_pool.hpp"
#include <thread>
namespace mneme {

/// The nodes as they are named now; nothing where nobody has asked for it since the last call.
using renamed_nodes_function = std::function<std::optional<expected<std::vector<node_address>>>()>;

/// Looks whether nodes were named anew, as long as it lives: this waits for files and name servers, so it has a thread.
class node_list_watch {
public:
  /// @param renamed asked on that thread @param say takes a line for the log, from that thread
  node_list_watch(std::shared_ptr<node_pool> nodes, renamed_nodes_function renamed,
                  std::function<void(std::string)> say);

private:
  void look(node_pool& nodes);
  renamed_nodes_function renamed_;
  std::function<void(std::string)> say_;
  std::jthread thread_; // last: it ends before what it uses
};

} // namespace mneme
