/// shard_journal: what a shard has been given and has told, so that another host can take it over at any moment.
#pragma once
#include "runtime/federation/rerun.hpp"
#include "runtime/federation/shard_rounds.hpp"
#include <set>
#include <variant>
namespace mneme {

/// Stands between the federation and whoever hosts one shard. While the host is well it passes everything on, and takes
/// notes. When the host is lost its rounds, which are pure, run again at the next one, up to where they were; then what
/// was asked for and not answered is asked for again. The federation sees no more of it than a wave that took long.
class shard_journal {
public:
  using command = std::variant<start_rounds, release, abandon>;

  /// @param clients outlives the journal
  shard_journal(shard_id shard, const population& clients) : shard_(shard), rounds_(shard, clients) {}

  // -- inputs: from the federation
  void take(command order);

  // -- inputs: from the host and about it
  /// What is wrong with a report of the present host, as far as its rounds and jobs are concerned; empty: nothing is.
  [[nodiscard]] std::string wrong_with(const wave_report& report) const;
  /// A report of the present host; fills in how long its jobs take. Answers with what is wrong with it, and then has
  /// taken nothing of it; empty: nothing is.
  [[nodiscard]] std::string take(wave_report report);
  /// The same of a report that was looked at. @pre wrong_with() finds nothing
  void accept(wave_report report);
  /// Commands wait until there is another one.
  void host_lost();
  /// There is a host that knows nothing of this shard. @pre there was none
  void host_found();
  /// Another host takes the shard over, while the present one lives. Answers with what the present one should forget.
  /// @pre is_quiet(), and its commands were taken
  [[nodiscard]] abandon change_host();

  // -- outputs
  /// For the host.
  [[nodiscard]] std::vector<command> take_commands() { return std::exchange(commands_, {}); }
  /// For the federation.
  [[nodiscard]] std::vector<wave_report> take_reports() { return std::exchange(reports_, {}); }
  /// No round is at the shard and nobody waits for it: another host would begin as this one goes on.
  [[nodiscard]] bool is_idle() const noexcept { return rounds_.by_id().empty() && !wave_ && waiting_.empty(); }
  /// The host owes no answer: rounds may be at the shard, and their clients wait.
  [[nodiscard]] bool is_quiet() const noexcept { return host_ == host_state::well && !wave_ && waiting_.empty(); }
  /// There is a host, and it has not said all that it was asked for.
  [[nodiscard]] bool awaits_host() const noexcept {
    return host_ != host_state::none && (wave_ || host_ != host_state::well);
  }
  /// What a round at the shard was started with; null: it is not there.
  [[nodiscard]] const assignment* given(assignment_id id) const;
  /// How many stages of a round at the shard its host has told of.
  [[nodiscard]] std::uint32_t stages_told(assignment_id id) const;
  /// How many rounds the host has to tell of before its wave ends.
  [[nodiscard]] std::size_t rounds_owed() const noexcept {
    return host_ == host_state::repeating ? unrepeated_.size() : rounds_.owed();
  }
  /// The first of them, if there is any.
  [[nodiscard]] const assignment* first_owed() const;

private:
  enum class host_state : std::uint8_t {
    none,
    well,
    repeating, ///< Rounds run again, up to where they were.
    settling,  ///< They are there; what had run besides runs again, and nobody waits for it.
  };
  /// What the federation waits for.
  struct open_wave {
    bool at_once = false;
    bool is_listed = false; // it knows which batches run
  };

  void begin(const start_rounds& wave);
  void begin(const release& order);
  void begin(const abandon& rounds);
  [[nodiscard]] std::string wrong_with_round(assignment_id id) const;
  [[nodiscard]] std::string wrong_with_ends(const wave_report& report, std::vector<assignment_id>& ended) const;
  [[nodiscard]] std::string wrong_with_released(const wave_report& report) const;
  [[nodiscard]] std::string wrong_with_jobs(const std::vector<issued_job>& issued, std::size_t& rounds) const;
  void note(wave_report& report);
  void end_wave();
  void repeat(wave_report& report);
  void settle();
  void go_on();

  shard_id shard_;
  shard_rounds rounds_; // which of them are owed is not counted while they are repeated
  host_state host_ = host_state::none;
  std::optional<open_wave> wave_;
  rerun repeated_;                     // at the new host
  std::set<assignment_id> unrepeated_; // of which it has to tell next
  wave_report answer_;                 // of rounds whose start nobody has told yet
  std::vector<command> waiting_;
  std::vector<command> commands_;
  std::vector<wave_report> reports_;
};

} // namespace mneme
