/// node_messages: messages between a run and a node, in the order in which a run sends and receives them.
#pragma once
#include "actors/protocol/run_end.hpp"
#include <string>
#include <utility>
#include <vector>
namespace mneme {

/// Kind of a message; its first byte.
enum class node_message : std::uint8_t {
  greeting,     ///< Node: its identity; the first message.
  refusal,      ///< Either side: reason why the node cannot take part; then the connection closes.
  offer,        ///< Run: the scenario, and the files that it names.
  file_request, ///< Node: list of offered files to send.
  file,         ///< Run: one requested file.
  ready,        ///< Node: has loaded everything; contains the node's fingerprint.
  begin,        ///< Run: layout; rounds follow.
  start,        ///< Run: start_rounds, and digests of tensors to evict.
  release,      ///< Run: release; batches of parked jobs to run.
  abandon,      ///< Run: abandon; rounds to discard.
  report,       ///< Node: a wave_report.
  interrupt,    ///< Run: the node must end its programs, each between two slices.
  leaving,      ///< Node: leaves the run within its grace period; it accepts no more shards.
  end,          ///< Run: the run is over (with its outcome), or the leaving node may disconnect.
};

/// Pairs of a name and a value: fingerprint fields that both sides must share, or printable information.
using fingerprint_fields = std::vector<std::pair<std::string, std::string>>;

inline constexpr std::int64_t node_workers_max = 4096; // the limit of worker.count

struct node_hello {
  std::uint64_t process = 0;    ///< Random number of the node's process; distinguishes a reconnect from a new node.
  std::string name{};           ///< Host name.
  fingerprint_fields program{}; ///< Compared with the run's program before anything is loaded.
  std::int64_t workers = 0;
  std::int64_t rank = -1; ///< Rank among the processes of a launcher; -1: no launcher, so it may join any run.
  std::string job{};      ///< Launcher's id of the job; empty if it has none.
  void persist(archive& state) { state(process)(name)(program)(workers)(rank)(job); }
};
struct no_content {
  void persist(archive& /*state*/) {}
};
struct node_rejection {
  std::vector<std::string> reasons{};
  void persist(archive& state) { state(reasons); }
};
struct offered_file {
  std::string key{};       ///< Scenario key that names the file.
  std::string extension{}; ///< Extension of the file name, such as ".csv".
  digest128 content{};
  void persist(archive& state) { state(key)(extension)(content); }
};
struct run_offer {
  std::string name{};     ///< Name of the scenario.
  std::string scenario{}; ///< Resolved, as TOML.
  std::vector<offered_file> files{};
  std::vector<std::string> emptied{}; ///< Keys that the run clears: nodes do not need them or have their own values.
  void persist(archive& state) { state(name)(scenario)(files)(emptied); }
};
struct file_request {
  std::vector<std::string> keys{};
  void persist(archive& state) { state(keys); }
};
struct file_content {
  std::string key{};
  std::vector<std::byte> bytes{};
  void persist(archive& state) { state(key).plain(bytes); }
};
struct node_ready {
  fingerprint_fields fingerprint{};
  void persist(archive& state) { state(fingerprint); }
};
/// Layout of the run; the members mean the same as in run_context.
struct node_layout {
  std::int64_t shards = 1, node_workers = 1, batches_per_worker = 1;
  void persist(archive& state) { state(shards)(node_workers)(batches_per_worker); }
};

struct node_leave {
  std::int64_t grace_ms = 0; ///< Time until the node disconnects, with or without shards.
  void persist(archive& state) { state(grace_ms); }
};

/// Counters of a node, sent with each report.
struct node_counters {
  std::uint64_t messages_handled = 0; ///< Number of messages with tensors that it has handled.
  std::int64_t busy_ns = 0;           ///< Computing time of its workers in this run, in nanoseconds.
  void persist(archive& state) { state(messages_handled)(busy_ns); }
};

template <class Content>
[[nodiscard]] archive message_of(node_message kind, Content content) {
  archive message;
  message(kind)(content);
  return message;
}

/// Returns one text per field that differs, with both values.
[[nodiscard]] std::vector<std::string> differences(const fingerprint_fields& of_run, const fingerprint_fields& of_node);
/// Fingerprint of this program: build, LibTorch version, instruction set and kernel variables.
[[nodiscard]] const fingerprint_fields& program_fingerprint();

/// Converts text from a peer to one line of printable ASCII of at most 1,000 characters.
[[nodiscard]] std::string printable_ascii(const std::string& text);

/// Returns an archive that reads a whole message, starting with its kind.
[[nodiscard]] archive reader_of(const archive::buffer& message);

} // namespace mneme
