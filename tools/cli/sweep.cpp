#include "runtime/base/intra_op_threads.hpp"
#include "runtime/base/printable.hpp"
#include "tools/cli/forked_tasks.hpp"
#include "tools/cli/interrupts.hpp"
#include "tools/cli/job_array.hpp"
#include "tools/cli/messages.hpp"
#include "tools/cli/report_files.hpp"
#include "tools/cli/run_locks.hpp"
#include "tools/cli/run_options.hpp"
#include "tools/cli/shared_data.hpp"
#include "tools/cli/sweep_progress.hpp"
#include "tools/study/accuracy_plot.hpp"
#include "tools/study/comparison_text.hpp"
#include "tools/study/run_catalogue.hpp"
#include "tools/study/sweep_order.hpp"
#include "tools/study/sweep_plan.hpp"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <fmt/format.h>
#include <sstream>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
namespace mneme {
namespace {

namespace fs = std::filesystem;

/// A run that has not been completed.
struct pending_run {
  const planned_run* plan = nullptr;
  fs::path folder{};
  bool resumed = false; ///< true: it was started earlier and is resumed now.
  std::shared_ptr<const raw_data> data{};
};

/// Messages about points of the sweep, each printed once, with the points that it concerns.
class point_findings {
public:
  /// Adds the messages of a point. @param texts output of the check of the point, one message per line
  void add(const std::string& point, const std::string& texts) {
    std::istringstream lines(texts);
    for (std::string line; std::getline(lines, line);) {
      const auto known =
          std::find_if(found_.begin(), found_.end(), [&](const auto& entry) { return entry.first == line; });
      (known == found_.end() ? found_.emplace_back(line, std::vector<std::string>{}) : *known).second.push_back(point);
    }
  }
  [[nodiscard]] bool empty() const noexcept { return found_.empty(); }
  /// Prints the messages on stderr. A message that does not concern all points names the first one.
  void print(std::size_t points) const {
    for (const auto& [line, where] : found_) {
      std::fprintf(stderr, "%s\n", line.c_str());
      if (where.size() < points)
        std::fprintf(stderr, "  at %s%s\n", printable(where.front()).c_str(),
                     where.size() > 1 ? fmt::format(" and {} more", where.size() - 1).c_str() : "");
    }
  }

private:
  std::vector<std::pair<std::string, std::vector<std::string>>> found_; // points by message
};

/// The first error message on a task's stderr, without "error:".
std::string reason_of(const task_exit& ended) {
  if (ended.signal != 0)
    return fmt::format("killed by signal {} ({})", ended.signal, ::strsignal(ended.signal));
  const std::string lead = "error: ";
  auto text = ended.errors;
  if (const auto at = text.find(lead); at != std::string::npos)
    text.erase(at, lead.size());
  const auto resume = text.find("resume with");
  text = text.substr(0, resume);
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text.empty() ? fmt::format("ended with exit code {}", ended.code) : text;
}

class sweep {
public:
  sweep(sweep_plan plan, fs::path out, const sweep_arguments& arguments)
      : plan_(std::move(plan)), out_(std::move(out)), arguments_(arguments) {}

  int run() {
    find_pending();
    choose_threads();
    auto wrong = runs_of_other_data();
    append(wrong, damaged_);
    if (!pending_.empty() && !arguments_.dry)
      append(wrong, unwritable());
    if (!wrong.empty())
      return print_errors(wrong);
    for (auto& run : pending_)
      run.data = data_.rows_of(run.plan->scenario);
    if (const int code = check_points(); code != exit_done)
      return code;
    if (arguments_.dry)
      return show_plan();
    if (!arguments_.slurm.empty())
      return write_array();
    if (!pending_.empty()) {
      fs::create_directories(out_);
      locks_.emplace(out_);
      write_sweep_order(out_, plan_);
    }
    view_.started(plan_.runs.size(), plan_.runs.size() - pending_.size(), jobs_, threads_);
    const bool all_done = run_pending();
    view_.finished();
    const bool shown = show_table();
    const bool reported = (pending_.empty() && !unwritable().empty()) || report();
    if (interrupts_.load() > 0)
      return exit_interrupted;
    return all_done && shown && reported ? exit_done : exit_failed;
  }

private:
  /// Selects the runs to compute. Completed runs of this version are kept, started ones are resumed.
  void find_pending() {
    const run_catalogue catalogue(out_);
    print_warnings(catalogue.damage(), arguments_.json ? warning_style::json : warning_style::text);
    std::map<std::string, stored_run> known, damaged; // keys: scenario digests; a completed run takes precedence
    for (auto& found : catalogue.find({{.name = "version", .comparison = "=", .value = MNEME_VERSION}}))
      if (found.status == "damaged")
        damaged[found.scenario_digest] = std::move(found);
      else if (auto& best = known[found.scenario_digest]; best.status != "done")
        best = std::move(found);
    for (const auto& planned : plan_.runs) {
      const auto found = known.find(planned.digest);
      if (const auto broken = damaged.find(planned.digest); found == known.end() && broken != damaged.end())
        damaged_.push_back(
            {broken->second.folder.string(), broken->second.error + "; or move its folder away to run it again"});
      if (found == known.end()) {
        pending_.push_back({.plan = &planned});
        continue;
      }
      begun_.emplace_back(&planned, found->second);
      if (found->second.status != "done")
        pending_.push_back({.plan = &planned, .folder = found->second.folder, .resumed = true});
    }
  }

  /// Returns one error per run whose data have changed since it began. Such runs can be neither resumed nor compared.
  diagnostics runs_of_other_data() {
    diagnostics others;
    for (const auto& [planned, run] : begun_) {
      if (run.data_digest.empty()) // the run was started by a version that did not record this digest
        continue;
      const auto now = data_.digest_of(planned->scenario);
      if (!now.empty() && now != run.data_digest)
        others.push_back(
            {run.folder.string(), fmt::format("the data set '{}' has changed since this run began: its digest was {} "
                                              "and is {}; restore the old files, or move the folder of the run away",
                                              run.dataset, run.data_digest, now)});
    }
    return others;
  }

  /// Prints a line per run: "kept", "resumed" or "new", and its label.
  [[nodiscard]] int show_plan() const {
    std::map<const planned_run*, const char*> known;
    for (const auto& run : pending_)
      known[run.plan] = run.resumed ? "resumed" : "new";
    for (const auto& planned : plan_.runs) {
      const auto found = known.find(&planned);
      std::printf("%-7s  %s\n", found == known.end() ? "kept" : found->second, printable(planned.label).c_str());
    }
    return exit_done;
  }

  /// Writes the pending runs as a script for sbatch instead of running them.
  [[nodiscard]] int write_array() {
    std::vector<array_point> points;
    for (auto& run : pending_) {
      if (run.folder.empty())
        choose_folder(run);
      points.push_back({run.plan->scenario.name, resolved_text(run.plan->scenario), run.folder});
    }
    if (points.empty()) {
      std::fprintf(stderr, "all runs of the sweep are done; nothing to submit\n");
      return exit_done;
    }
    write_job_array(arguments_.slurm, points, std::max<std::int64_t>(1, arguments_.threads));
    if (!arguments_.quiet)
      std::printf("%zu runs: sbatch %s\n", points.size(), printable(arguments_.slurm).c_str());
    return exit_done;
  }

  /// Returns errors that prevent writing into the output folder or creating it.
  [[nodiscard]] diagnostics unwritable() const {
    std::error_code error;
    auto there = fs::absolute(out_);
    while (!fs::exists(there, error) && there.has_relative_path())
      there = there.parent_path();
    if (::access(there.c_str(), W_OK | X_OK) == 0)
      return {};
    error = {errno, std::generic_category()};
    return {{"", fmt::format("--out '{}' is not writable: {}; choose another folder", out_.string(), error.message())}};
  }

  /// Chooses the folder of a run: the default name, with a number if another run has it. Another sweep may have started
  /// or completed the run since find_pending(). @pre the lock of the run is held
  void choose_folder(pending_run& run) const {
    const auto name = out_ / default_run_name(run.plan->scenario, run.plan->digest);
    auto path = name;
    std::error_code none;
    for (int number = 2; fs::exists(fs::symlink_status(path, none)) && !run_directory::never_started(path); ++number) {
      const auto there = read_stored_run(path);
      run.resumed = there && there->scenario_digest == run.plan->digest && there->version == MNEME_VERSION;
      if (run.resumed)
        break;
      path = fmt::format("{}-{}", name.string(), number);
    }
    run.folder = path;
  }

  void choose_threads() {
    const auto cores = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
    const auto runs = std::max<std::int64_t>(1, std::ssize(pending_));
    jobs_ = std::min(arguments_.jobs > 0 ? arguments_.jobs : cores, runs);
    threads_ = arguments_.threads > 0 ? arguments_.threads : std::max<std::int64_t>(1, cores / jobs_);
  }

  /// Validates one seed of each point as `mneme validate` does. This happens in child processes, because forked runs
  /// could not use a device that this process has initialized.
  int check_points() {
    std::vector<const pending_run*> points;
    for (const auto& run : pending_)
      if (points.empty() || points.back()->plan->point != run.plan->point)
        points.push_back(&run);
    forked_tasks tasks;
    std::map<std::size_t, std::string> errors; // by point
    for (std::size_t next = 0; next < points.size() || tasks.running() > 0;) {
      if (interrupts_.load() > 0)
        return exit_interrupted;
      while (next < points.size() && tasks.running() < static_cast<std::size_t>(jobs_)) {
        const auto& run = *points[next];
        tasks.start(next++, [&run] {
          const auto wrong = check_against_data(run.plan->scenario, run.data.get());
          return wrong.empty() ? int{exit_done} : print_errors(wrong);
        });
      }
      const auto ended = tasks.next_end(std::chrono::milliseconds(100));
      if (ended && ended->code == exit_bad_input)
        errors[ended->task] = ended->errors;
    }
    print_errors(plan_.errors);
    point_findings findings;
    for (const auto& [task, texts] : errors)
      findings.add(points[task]->plan->point, texts);
    findings.print(points.size());
    return findings.empty() && plan_.errors.empty() ? exit_done : exit_bad_input;
  }

  /// Computes all pending runs. Returns true if none failed.
  bool run_pending() {
    share_slots shares(static_cast<std::size_t>(jobs_));
    forked_tasks tasks;
    std::deque<std::size_t> waiting; // indices in pending_, in the order of the sweep
    for (std::size_t i = 0; i < pending_.size(); ++i)
      waiting.push_back(i);
    std::map<std::size_t, std::size_t> slot_of; // by task
    bool all_done = true, told = false;
    while (!waiting.empty() || tasks.running() > 0) {
      const bool stopped = interrupts_.load() > 0;
      if (stopped && !told)
        tasks.terminate();
      told = stopped;
      if (stopped && tasks.running() == 0)
        break;
      // Runs that another sweep has locked are tried again later.
      for (auto next = waiting.begin();
           !stopped && next != waiting.end() && tasks.running() < static_cast<std::size_t>(jobs_);) {
        if (!locks_->acquire(pending_[*next].plan->digest)) {
          ++next;
          continue;
        }
        const auto slot = shares.take();
        slot_of[*next] = slot;
        start(tasks, *next, shares.at(slot));
        next = waiting.erase(next);
      }
      if (const auto ended = tasks.next_end(std::chrono::milliseconds(100))) {
        shares.release(slot_of.extract(ended->task).mapped());
        locks_->release(pending_[ended->task].plan->digest);
        all_done = record(*ended) && all_done;
      }
      std::map<std::string, double> at_work;
      for (const auto& [task, slot] : slot_of)
        at_work[pending_[task].plan->label] = shares.at(slot)->load(std::memory_order_relaxed);
      view_.tick(at_work);
    }
    return all_done;
  }

  void start(forked_tasks& tasks, std::size_t task, std::atomic<double>* share) {
    auto& run = pending_[task];
    if (run.folder.empty())
      choose_folder(run);
    view_.began(run.plan->label, run.folder.string(), run.resumed);
    tasks.start(task, [this, &run, share] {
      const run_options options{.out = run.folder,
                                .threads = threads_,
                                .style = progress_style::quiet,
                                .interrupts = &interrupts_,
                                .data = run.data,
                                .share_done = share,
                                .draw_accuracy = accuracy_plot_svg};
      if (!run.resumed) {
        const auto ended = run_simulation(run.plan->scenario, options);
        return ended ? exit_code_of(*ended) : print_errors(ended.error());
      }
      const auto ended = resume_simulation(run.folder, options);
      if (!ended)
        return print_errors(ended.error());
      return *ended ? exit_code_of(**ended) : exit_done; // another sweep has completed the run
    });
  }

  bool record(const task_exit& ended) {
    const auto& run = pending_[ended.task];
    swept_run made{.label = run.plan->label, .folder = run.folder.string(), .status = "done"};
    if (ended.code == exit_interrupted) {
      made.status = "interrupted";
    } else if (ended.code != exit_done) {
      made.status = "failed";
      made.error = reason_of(ended);
    }
    view_.ended(made);
    return made.status != "failed";
  }

  /// Prints the comparison of all completed runs, and one line for each other run. Returns false if they cannot be
  /// compared.
  bool show_table() {
    std::map<std::string, stored_run> known;
    for (auto& found : run_catalogue(out_).find({{.name = "version", .comparison = "=", .value = MNEME_VERSION}}))
      if (auto& best = known[found.scenario_digest]; best.status != "done")
        best = std::move(found);
    std::vector<stored_run> runs;
    std::vector<std::string> order;
    for (const auto& planned : plan_.runs) {
      order.push_back(planned.digest);
      if (const auto found = known.find(planned.digest); found != known.end() && found->second.status != "damaged")
        runs.push_back(found->second);
    }
    const bool any_done =
        std::any_of(runs.begin(), runs.end(), [](const stored_run& run) { return run.status == "done"; });
    if (arguments_.quiet || arguments_.json || !any_done)
      return true;
    const auto table = compare_runs(runs, {.by = plan_.by, .sweep_order = std::move(order)});
    if (!table) {
      print_errors(table.error());
      return false;
    }
    print_warnings(table->warnings, warning_style::text);
    std::printf("\n%s", printable(comparison_text(*table, comparison_format::text)).c_str());
    return true;
  }

  /// Writes the report and the first figure of the completed runs to the sweep's folder. Returns false on failure.
  bool report() {
    std::map<std::string, stored_run> done;
    for (auto& run : run_catalogue(out_).find({{.name = "version", .comparison = "=", .value = MNEME_VERSION},
                                               {.name = "status", .comparison = "=", .value = "done"}}))
      done.try_emplace(run.scenario_digest, std::move(run));
    std::vector<stored_run> runs; // in the order of the sweep, with its labels
    for (const auto& planned : plan_.runs)
      if (const auto found = done.find(planned.digest); found != done.end())
        runs.push_back(std::move(found->second));
    if (runs.empty())
      return true;
    const auto name = arguments_.scenarios.size() == 1 ? fs::path(arguments_.scenarios.front()).stem() : "sweep";
    const auto page = out_ / name.string().append(".html"), figure = out_ / name.string().append(".svg");
    if (const auto written = write_report(std::move(runs), {.page = page, .first_figure = figure}); !written) {
      print_errors(written.error());
      return false;
    }
    view_.reported(page.string(), figure.string());
    return true;
  }

  /// Progress of runs, in memory that all processes share.
  class share_slots {
  public:
    explicit share_slots(std::size_t count) : count_(count) {
      void* memory = ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED)
        throw std::bad_alloc();
      slots_ = static_cast<std::atomic<double>*>(memory);
      for (std::size_t slot = count; slot > 0; --slot)
        free_.push_back(slot - 1);
    }
    share_slots(const share_slots&) = delete;
    share_slots& operator=(const share_slots&) = delete;
    ~share_slots() { ::munmap(slots_, bytes()); }
    std::size_t take() {
      const auto slot = free_.back();
      free_.pop_back();
      new (&slots_[slot]) std::atomic<double>(0.0);
      return slot;
    }
    void release(std::size_t slot) { free_.push_back(slot); }
    [[nodiscard]] std::atomic<double>* at(std::size_t slot) const { return &slots_[slot]; }

  private:
    [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(std::atomic<double>); }
    static_assert(std::atomic<double>::is_always_lock_free);
    std::size_t count_;
    std::atomic<double>* slots_ = nullptr;
    std::vector<std::size_t> free_;
  };

  sweep_plan plan_;
  fs::path out_;
  const sweep_arguments& arguments_;
  std::vector<pending_run> pending_;
  diagnostics damaged_;                                          // unreadable runs of this sweep
  std::vector<std::pair<const planned_run*, stored_run>> begun_; // runs that were started earlier, or by another sweep
  shared_data data_;
  std::optional<run_locks> locks_;
  std::int64_t jobs_ = 1, threads_ = 1;
  const std::atomic<int>& interrupts_ = watch_interrupts();
  sweep_progress view_{stdout, style_option(arguments_.quiet, arguments_.json)};
};

/// Reads the request from the command line, or from the sweep file that it names.
sweep_request request_of(const sweep_arguments& arguments, diagnostics& wrong) {
  sweep_request made;
  const bool in_file = !arguments.scenarios.empty() && is_sweep_file(arguments.scenarios.front());
  if (in_file && arguments.scenarios.size() > 1)
    wrong.push_back({arguments.scenarios.front(), "is a sweep and names its scenarios; expected no other scenarios"});
  if (in_file) {
    auto read = read_sweep(arguments.scenarios.front());
    if (read)
      made = std::move(*read);
    else
      append(wrong, read.error());
  } else {
    made.scenarios = {arguments.scenarios.begin(), arguments.scenarios.end()};
  }
  for (const auto& text : arguments.over)
    if (auto axis = parse_axis(text))
      made.axes.push_back(std::move(*axis));
    else
      append(wrong, axis.error());
  if (const auto settings = parse_settings(arguments.settings))
    made.settings.insert(made.settings.end(), settings->begin(), settings->end());
  else
    append(wrong, settings.error());
  for (const auto& axis : made.axes)
    if (const auto set = std::find_if(made.settings.begin(), made.settings.end(),
                                      [&](const auto& setting) { return setting.first == axis.key; });
        set != made.settings.end())
      wrong.push_back({"", fmt::format("the key '{}' is both set to {} and varied; expected only one of the two",
                                       axis.key, set->second)});
  if (auto seeds = parse_seeds("--seeds", arguments.seeds); !seeds)
    append(wrong, seeds.error());
  else if (!seeds->empty())
    made.seeds = std::move(*seeds);
  return made;
}

} // namespace

int sweep_scenarios(const sweep_arguments& arguments) {
  disable_intra_op_threads(); // forked processes do not have OpenMP's threads and would wait for them
  diagnostics wrong;
  const auto request = request_of(arguments, wrong);
  const fs::path out = arguments.out.empty() ? "runs" : arguments.out;
  std::error_code none;
  if (fs::exists(out, none) && !fs::is_directory(out, none))
    wrong.push_back({"", "--out '" + out.string() + "' is not a folder; choose a folder for the runs of sweeps"});
  const bool known = wrong.empty() || !request.scenarios.empty();
  auto plan = known ? check_sweep_points(request) : sweep_plan{};
  if (!wrong.empty() || plan.runs.empty()) {
    append(wrong, plan.errors);
    return print_errors(wrong);
  }
  print_warnings(plan.warnings, arguments.quiet  ? warning_style::none
                                : arguments.json ? warning_style::json
                                                 : warning_style::text);
  return sweep(std::move(plan), out, arguments).run();
}

} // namespace mneme
