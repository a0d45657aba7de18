/// node_messages: what a run and a node say to each other, in the order of a run.
#pragma once
#include "runtime/base/archive.hpp"
#include <string>
#include <utility>
#include <vector>
namespace mneme {

/// Each message begins with its kind.
enum class node_message : std::uint8_t {
  greeting,     ///< Both, first: who it is.
  refusal,      ///< Node: why it takes no part, in words; it closes then.
  offer,        ///< Run: the scenario, and the files that it names.
  wanted_files, ///< Node: those of them that it does not have.
  file,         ///< Run: one of these.
  ready,        ///< Node: everything is loaded, and what it has loaded.
  begin,        ///< Run: who computes; work follows.
  start,        ///< Run: start_rounds, and names of tensors to forget.
  release,      ///< Run
  abandon,      ///< Run
  report,       ///< Node: a wave_report.
  interrupt,    ///< Run: programs end between two slices.
  status,       ///< Node, to who asks: a JSON object.
};

/// A name and a value that both sides have to agree on, or a name and what it says to people.
using named_facts = std::vector<std::pair<std::string, std::string>>;

enum class peer_role : std::uint8_t { run, node, asking }; // asking: for the node's status only

inline constexpr std::int64_t node_workers_max = 4096; // as worker.count

struct node_greeting {
  peer_role role = peer_role::run;
  std::string name{};       ///< The machine's.
  named_facts program{};    ///< What has to agree before anything is loaded.
  std::int64_t workers = 0; ///< A node's.
  void persist(archive& state);
};
struct node_refusal {
  std::vector<std::string> reasons{};
  void persist(archive& state) { state(reasons); }
};
struct offered_file {
  std::string key{};       ///< The scenario's key that names it.
  std::string extension{}; ///< ".csv"
  digest128 content{};
  void persist(archive& state) { state(key)(extension)(content); }
};
struct run_offer {
  std::string name{};     ///< The scenario's.
  std::string scenario{}; ///< Resolved, as TOML.
  std::vector<offered_file> files{};
  std::vector<std::string> emptied{}; ///< Keys that name what a node does not need, or has of its own.
  void persist(archive& state) { state(name)(scenario)(files)(emptied); }
};
struct wanted_files {
  std::vector<std::string> keys{};
  void persist(archive& state) { state(keys); }
};
struct file_content {
  std::string key{};
  std::vector<std::byte> bytes{};
  void persist(archive& state) { state(key).plain(bytes); }
};
struct ready_node {
  named_facts world{};
  void persist(archive& state) { state(world); }
};
/// As run_context has them.
struct node_layout {
  std::int64_t shards = 1, node_workers = 1, batches_per_worker = 1;
  void persist(archive& state) { state(shards)(node_workers)(batches_per_worker); }
};
struct node_status {
  std::string json{};
  void persist(archive& state) { state(json); }
};

/// What a report says of its node besides.
struct node_figures {
  std::uint64_t heard = 0;  ///< Messages with tensors that it has handled.
  std::int64_t busy_ns = 0; ///< That its workers have computed in this run.
  void persist(archive& state) { state(heard)(busy_ns); }
};

template <class Content>
[[nodiscard]] archive message_of(node_message kind, Content content) {
  archive message;
  message(kind)(content);
  return message;
}

/// The names of facts on which the two differ, each with both values, in words.
[[nodiscard]] std::vector<std::string> differences(const named_facts& of_run, const named_facts& of_node);
/// What every program of mneme says of itself: build, LibTorch, instruction set.
[[nodiscard]] const named_facts& program_facts();

/// An archive over all of a message, from its kind on.
[[nodiscard]] archive reader_of(const archive::buffer& message);

} // namespace mneme
