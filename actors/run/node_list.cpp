#include "actors/run/node_list.hpp"
namespace mneme {

node_list_watch::node_list_watch(std::shared_ptr<node_pool> nodes, renamed_nodes_function renamed,
                                 std::function<void(std::string)> say)
    : renamed_(std::move(renamed)), say_(std::move(say)),
      thread_([this, nodes = std::move(nodes)](const std::stop_token& stop) {
        for (; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(50)))
          look(*nodes);
      }) {}

void node_list_watch::look(node_pool& nodes) {
  const auto named = renamed_();
  if (!named)
    return;
  auto wrong = *named ? nodes.rename(**named) : named->error();
  for (const auto& problem : wrong)
    say_("nodes: " + diagnostic_text(problem) + (*named ? "" : "; the nodes stay what they were"));
  if (*named)
    say_("nodes: " + std::to_string((*named)->size()) + " are named now");
}

} // namespace mneme
