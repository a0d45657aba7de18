/// node_messages: messages between a run and a node, in the order of a run.
#pragma once
#include "runtime/base/archive.hpp"
#include <string>
#include <utility>
#include <vector>
namespace mneme {

/// Kind of a message; its first byte.
enum class node_message : std::uint8_t {
  greeting,     ///< Node, first: its identity.
  refusal,      ///< Either: the reason why the node cannot take part; then the connection is closed.
  offer,        ///< Run: the scenario, and the files that it names.
  wanted_files, ///< Node: the files that it does not have.
  file,         ///< Run: one requested file.
  ready,        ///< Node: everything is loaded; fingerprint of it.
  begin,        ///< Run: layout; work follows.
  start,        ///< Run: start_rounds, and digests of tensors to evict.
  release,      ///< Run
  abandon,      ///< Run
  report,       ///< Node: a wave_report.
  interrupt,    ///< Run: programs stop between two slices.
  leaving,      ///< Node: it wants to leave and gets no more shards.
  end,          ///< Run: the run is over, or the node may leave.
};

/// Pairs of a name and a value: fingerprint fields that both sides must share, or printable information.
using named_facts = std::vector<std::pair<std::string, std::string>>;

inline constexpr std::int64_t node_workers_max = 4096; // as worker.count

struct node_greeting {
  std::uint64_t process = 0; ///< Random number of the node's process, which tells a reconnect from a new node.
  std::string name{};        ///< Name of the machine.
  named_facts program{};     ///< Must agree before anything is loaded.
  std::int64_t workers = 0;
  void persist(archive& state) { state(process)(name)(program)(workers); }
};
struct no_content {
  void persist(archive& /*state*/) {}
};
struct node_refusal {
  std::vector<std::string> reasons{};
  void persist(archive& state) { state(reasons); }
};
struct offered_file {
  std::string key{};       ///< Scenario key that names the file.
  std::string extension{}; ///< ".csv"
  digest128 content{};
  void persist(archive& state) { state(key)(extension)(content); }
};
struct run_offer {
  std::string name{};     ///< Name of the scenario.
  std::string scenario{}; ///< Resolved, as TOML.
  std::vector<offered_file> files{};
  std::vector<std::string> emptied{}; ///< Keys that a node does not need, or for which it has its own value.
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
/// Layout of the run; see run_context.
struct node_layout {
  std::int64_t shards = 1, node_workers = 1, batches_per_worker = 1;
  void persist(archive& state) { state(shards)(node_workers)(batches_per_worker); }
};

/// Counters of a node, sent with each report.
struct node_figures {
  std::uint64_t heard = 0;  ///< Number of handled messages with tensors.
  std::int64_t busy_ns = 0; ///< Computing time of its workers in this run.
  void persist(archive& state) { state(heard)(busy_ns); }
};

template <class Content>
[[nodiscard]] archive message_of(node_message kind, Content content) {
  archive message;
  message(kind)(content);
  return message;
}

/// Describes the fields that differ, each with both values.
[[nodiscard]] std::vector<std::string> differences(const named_facts& of_run, const named_facts& of_node);
/// Fingerprint of this program: build, LibTorch, instruction set.
[[nodiscard]] const named_facts& program_facts();

/// Text of a peer as one line of ASCII of at most 1,000 characters, for messages and files.
[[nodiscard]] std::string printable_ascii(const std::string& text);

/// Returns an archive over a whole message, starting with its kind.
[[nodiscard]] archive reader_of(const archive::buffer& message);

} // namespace mneme
