/// command_line: parses the command line of mneme and runs a command.
#pragma once
#include <cstdint>
#include <string>
#include <vector>
namespace mneme {

/// Exit codes of the program.
enum exit_code : int { exit_done = 0, exit_failed = 1, exit_bad_input = 2, exit_interrupted = 130 };

/// Options `[--secret FILE | --cert FILE --key FILE --ca FILE]` of runs and nodes.
struct trust_arguments {
  std::string secret{};                          ///< File with the secret; empty: $MNEME_SECRET
  std::string certificate{}, key{}, authority{}; ///< Paths of certificates; empty: no certificates
};

/// Options `[--accept HOST:PORT [--workers-min N] | --distributed]` and trust_arguments of commands that run scenarios.
struct cluster_arguments {
  std::string accept{};         ///< Empty: no nodes
  std::int64_t workers_min = 0; ///< 0: do not wait for nodes
  bool distributed = false;
  trust_arguments trust{};
};

/// `[--metrics HOST:PORT [--metrics-token FILE]]`, for runs and for nodes.
struct metrics_arguments {
  std::string address{};    ///< Empty: no metrics
  std::string token_file{}; ///< Empty: $MNEME_METRICS_TOKEN
};

/// `mneme node --join HOST:PORT [--threads N] [--idle-timeout D] [--grace D] [--native-code]`, metrics_arguments and
/// trust_arguments, `mneme node --make-keys DIR`
struct serve_arguments {
  std::string join{}, keys{}; ///< Exactly one of them is given.
  std::string threads{};      ///< Empty: one thread per core
  std::string idle_timeout = "10 min", grace = "20 s";
  std::string arithmetic = "machine"; ///< Or "portable": that of the runs
  bool native_code = false;           ///< true: accept model.native_code
  metrics_arguments metrics{};
  trust_arguments trust{};
};

/// `mneme run SCENARIO... [--set KEY=VALUE]... [--seeds 1,2,3] [--out DIR] [--threads N] [--serve PORT [--serve-token
/// TOKEN]] [--quiet|--json] [--trace]`, metrics_arguments and cluster_arguments
struct run_arguments {
  std::vector<std::string> scenarios{};
  std::vector<std::string> settings{}; ///< "KEY=VALUE"
  std::string seeds{};                 ///< "1,2,3"; empty: the scenario's own
  std::string out{};                   ///< Empty: the default folder below runs/
  std::string threads{};               ///< Empty: one thread per core
  std::string serve{};                 ///< Port of the live report; empty: none
  std::string serve_token{};           ///< Empty: only requests of this machine are answered
  metrics_arguments metrics{};
  cluster_arguments on{};
  std::int64_t dumped_round = 0; ///< 0: do not store values
  bool quiet = false, json = false, trace = false, tensorboard = false;
};

/// `mneme resume RUN_DIR [--threads N] [--quiet|--json]`
struct resume_arguments {
  std::vector<std::string> folders{};
  std::string threads{};              ///< Empty: one thread per core
  std::string serve{}, serve_token{}; ///< As in run_arguments
  metrics_arguments metrics{};
  cluster_arguments on{};
  bool quiet = false, json = false;
};

/// `mneme verify RUN_DIR [--threads N] [--digest HEX] [--keep DIR] [--trace] [--dump-round N] [--quiet]`
struct verify_arguments {
  std::vector<std::string> folders{};
  std::string threads{}, digest{}, keep{}; ///< Empty: one thread per core; the run's digest; no folder is kept
  std::int64_t dumped_round = 0;           ///< 0: do not store values
  bool trace = false, quiet = false;
};

/// `mneme diff RUN_A RUN_B [--again [--threads N]]`
struct diff_arguments {
  std::vector<std::string> folders{};
  std::string threads{}; ///< Empty: one thread per core
  bool again = false;    ///< true: rerun both runs if their folders do not show the first differing element.
};

/// `mneme validate SCENARIO... [--set KEY=VALUE]... [--cost [--json]]`
struct validate_arguments {
  std::vector<std::string> scenarios{};
  std::vector<std::string> settings{}; ///< "KEY=VALUE"
  bool cost = false;                   ///< true: also print estimated computation, traffic, memory and time.
  bool json = false;                   ///< true: print a JSON object for each valid scenario.
};

/// `mneme calibrate SCENARIO [-o FILE] [--set KEY=VALUE]... [--seconds S]`
struct calibrate_arguments {
  std::vector<std::string> scenarios{};
  std::vector<std::string> settings{}; ///< "KEY=VALUE"
  std::string file{};                  ///< "": stdout
  double seconds = 6.0;                ///< Approximate duration of the measurement.
};

/// `mneme sweep SCENARIO... [--over KEY=V1,V2]... [--set KEY=VALUE]... [--seeds 1-5] [--out DIR] [--jobs N]
/// [--threads N] [--slurm FILE] [--quiet|--json]`
struct sweep_arguments {
  std::vector<std::string> scenarios{}; ///< Scenarios, or one file with a [sweep] table.
  std::vector<std::string> over{};      ///< "KEY=V1,V2"
  std::vector<std::string> settings{};  ///< "KEY=VALUE"
  std::string seeds{};                  ///< "1-5"; empty: the scenarios' own
  std::string out{};                    ///< Empty: runs
  std::int64_t jobs = 0;                ///< Number of concurrent runs; 0: one per core
  std::int64_t threads = 0;             ///< Threads per run; 0: divide the cores among the concurrent runs
  bool dry = false;                     ///< true: only print the planned runs.
  std::string slurm{};                  ///< File for a Slurm job-array script; if set, nothing is run.
  bool quiet = false, json = false;
};

/// `mneme benchmark run [TRACK [METHOD]] | check TRACK/METHOD/SEED | page [--folder DIR] [--seeds 1-3] [--out DIR]
/// [--jobs N] [--quiet]`
struct benchmark_arguments {
  std::vector<std::string> words{}; ///< The action, followed by its arguments.
  std::string folder{};             ///< Empty: scenarios/benchmark
  std::string seeds{};              ///< Empty: 1-3
  std::string out{};                ///< Empty: runs/benchmark, or docs/benchmark for the page
  std::int64_t jobs = 0;            ///< Number of concurrent runs; 0: one per core
  bool quiet = false;
};

/// `mneme compare DIR... [--by KEY,...] [--columns KEY] [--metric NAME,...] [--baseline LABELS] [--where FILTER]...
/// [--format text|csv|markdown|latex]`
struct compare_arguments {
  std::vector<std::string> folders{}; ///< Run directories, or folders that contain some.
  std::vector<std::string> by{}, metrics{}, where{};
  std::string columns{}, baseline{}, format = "text";
};

/// `mneme report DIR... [-o FILE] [--svg DIR] [--png DIR] [--tensorboard DIR] [--where FILTER]...`
struct report_arguments {
  std::vector<std::string> folders{}, where{};
  std::string file{};        ///< "": report.html
  std::string svg{}, png{};  ///< Folders for single figures; "": none
  std::string tensorboard{}; ///< Folder for event files, a folder for each run; "": none
};

/// `mneme new METHOD DATASET [-o FILE] [--set KEY=VALUE]...`
struct new_arguments {
  std::vector<std::string> names{}, settings{};
  std::string file{}; ///< "": stdout
};

/// `mneme doctor [--json] [--set KEY=VALUE]... [DATA...]`
struct doctor_arguments {
  std::vector<std::string> data{}, settings{};
  std::string partition{}; ///< Scenario whose partition is described; "": none.
  bool json = false;
};

/// Command with its options, for shell completion.
struct completed_command {
  std::string name{}, summary{};
  std::vector<std::string> options{}; ///< "--seeds"
};

/// `mneme list runs [--in DIR] [--where FILTER]...`
struct list_arguments {
  std::string listed{}; ///< "" for all, or one of listed_things().
  std::string folder{}; ///< Folder that contains the runs; "": runs
  std::vector<std::string> where{};
  bool markdown = false;
};

/// Runs the program: parses the command line, runs the command, and converts exceptions to messages and exit codes.
[[nodiscard]] int run_command_line(int count, const char* const* words);

// The commands, one source file each. All print their results and return an exit code.
[[nodiscard]] int run_scenarios(const run_arguments& arguments);
[[nodiscard]] int sweep_scenarios(const sweep_arguments& arguments);
[[nodiscard]] int serve_nodes(const serve_arguments& arguments);
[[nodiscard]] int resume_run(const resume_arguments& arguments);
[[nodiscard]] int verify_run(const verify_arguments& arguments);
[[nodiscard]] int diff_runs(const diff_arguments& arguments);
[[nodiscard]] int validate_scenarios(const validate_arguments& arguments);
[[nodiscard]] int calibrate_scenario(const calibrate_arguments& arguments);
[[nodiscard]] int run_benchmark(const benchmark_arguments& arguments);
[[nodiscard]] int compare_folders(const compare_arguments& arguments);
[[nodiscard]] int report_runs(const report_arguments& arguments);
[[nodiscard]] int new_scenario(const new_arguments& arguments);
/// Prints a completion script for `shell`: bash, zsh or fish.
[[nodiscard]] int print_completion(const std::string& shell, const std::vector<completed_command>& commands);
[[nodiscard]] int list_things(const list_arguments& arguments);
[[nodiscard]] int list_runs(const list_arguments& arguments);
[[nodiscard]] const std::vector<std::string>& listed_things();
/// Prints the JSON schema of scenarios.
[[nodiscard]] int print_schema();
/// `mneme doctor` with any of its arguments. Calls one of the next three functions.
[[nodiscard]] int doctor(const doctor_arguments& arguments);
/// `mneme doctor [--json]`: describes the machine and checks that it computes equal bits. Returns exit_failed if it
/// does not.
[[nodiscard]] int run_doctor(bool json);
/// `mneme doctor [--json] [--set KEY=VALUE]... DATA...`: describes data; returns exit_bad_input if they have errors.
[[nodiscard]] int inspect_data(const doctor_arguments& arguments);
/// `mneme doctor [--json] [--set KEY=VALUE]... --partition SCENARIO`: prints the rows of each class that clients hold.
[[nodiscard]] int inspect_partition(const doctor_arguments& arguments);
/// Explains a section, method, model or key; `mneme COMMAND --help` explains commands.
[[nodiscard]] int explain(const std::string& topic, const std::vector<std::string>& commands);

} // namespace mneme
