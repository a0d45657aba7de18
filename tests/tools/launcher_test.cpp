#include "tools/cli/launcher.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
using namespace mneme;
using Catch::Matchers::ContainsSubstring;

namespace {

using environment = std::map<std::string, std::string>;

expected<launched_rank> read(const environment& variables) {
  return read_launcher([&](const char* name) -> const char* {
    const auto entry = variables.find(name);
    return entry == variables.end() ? nullptr : entry->second.c_str();
  });
}

/// All errors, one per line.
std::string errors(const environment& variables) {
  const auto found = read(variables);
  std::string lines;
  for (const auto& error : found ? diagnostics{} : found.error())
    lines += diagnostic_text(error) + "\n";
  return lines;
}

environment with(environment variables, const environment& more) {
  for (const auto& [name, value] : more)
    variables[name] = value;
  return variables;
}

const environment torchrun{{"RANK", "5"},
                           {"WORLD_SIZE", "16"},
                           {"LOCAL_RANK", "1"},
                           {"LOCAL_WORLD_SIZE", "4"},
                           {"MASTER_ADDR", "node1"},
                           {"MASTER_PORT", "29400"},
                           {"TORCHELASTIC_RUN_ID", "none"}};
const environment slurm{{"SLURM_PROCID", "3"},  {"SLURM_NTASKS", "8"},        {"SLURM_LOCALID", "0"},
                        {"SLURM_JOB_ID", "77"}, {"SLURM_JOB_NUM_NODES", "2"}, {"SLURM_JOB_NODELIST", "node[03-04]"}};
const environment open_mpi{{"OMPI_COMM_WORLD_RANK", "2"},
                           {"OMPI_COMM_WORLD_SIZE", "3"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}};
const environment mpich{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};

} // namespace

TEST_CASE("read_launcher() reads torchrun's variables and uses another port than torchrun") {
  const auto found = read(torchrun).value();
  CHECK(found.rank == 5);
  CHECK(found.size == 16);
  CHECK(found.local_rank == 1);
  CHECK_FALSE(found.is_one_host);
  CHECK(found.host + ":" + std::to_string(found.port) == "node1:29401");
}

TEST_CASE("read_launcher() derives a port below the ephemeral range from a port that torchrun chose") {
  const auto port_for = [](const std::string& master) {
    return read(with(torchrun, {{"MASTER_PORT", master}})).value().port;
  };
  CHECK(port_for("32766") == 32767);
  CHECK(port_for("32767") == 22767);
  CHECK(port_for("41989") == 11989);
  CHECK(port_for("65535") == 15535);
}

TEST_CASE("read_launcher() reads Slurm's variables and finds rank 0 on the first host") {
  const auto found = read(slurm).value();
  CHECK(found.rank == 3);
  CHECK(found.size == 8);
  CHECK(found.local_rank == 0);
  CHECK(found.host == "node03");
  CHECK(found.port == read(with(slurm, {{"SLURM_PROCID", "0"}})).value().port);
  CHECK(found.port != read(with(slurm, {{"SLURM_JOB_ID", "78"}})).value().port);
  CHECK(read(with(slurm, {{"SLURM_JOB_NUM_NODES", "1"}})).value().host == "127.0.0.1");
}

TEST_CASE("read_launcher() reads the variables of Open MPI, MPICH and Kubernetes") {
  CHECK(read(open_mpi).value().rank == 2);
  CHECK(read(open_mpi).value().is_one_host);
  CHECK(read(mpich).value().rank == 1);
  CHECK(read(mpich).value().size == 2);
  const auto pod = read({{"JOB_COMPLETION_INDEX", "2"}, {"MASTER_ADDR", "job-0.job"}, {"WORLD_SIZE", "4"}}).value();
  CHECK(pod.rank == 2);
  CHECK(pod.size == 4);
  CHECK(pod.host + ":" + std::to_string(pod.port) == "job-0.job:29500");
}

TEST_CASE("read_launcher() returns the launcher's id of the job, which is empty if it has none") {
  CHECK(read(torchrun).value().job.empty()); // "none", without --rdzv-id
  CHECK(read(with(torchrun, {{"TORCHELASTIC_RUN_ID", "a"}})).value().job == "torchrun a");
  CHECK(read(slurm).value().job == "Slurm 77");
  CHECK(read(with(slurm, {{"SLURM_STEP_ID", "3"}})).value().job == "Slurm 77.3");
  CHECK(read(with(open_mpi, {{"PMIX_NAMESPACE", "9"}})).value().job == "Open MPI 9");
  CHECK(read(mpich).value().job.empty());
  CHECK(read({{"JOB_COMPLETION_INDEX", "2"}, {"MASTER_ADDR", "job-0.job"}}).value().job == "Kubernetes job-0.job");
}

TEST_CASE("read_launcher() derives port and job id of Open MPI without Slurm's step, which only some processes have") {
  const auto first = read(with(with(slurm, open_mpi), {{"PMIX_NAMESPACE", "9"}})).value();
  const auto other = read(with(with(slurm, open_mpi), {{"PMIX_NAMESPACE", "9"}, {"SLURM_STEP_ID", "0"}})).value();
  CHECK(first.port == other.port);
  CHECK(first.job == other.job);
}

TEST_CASE("a nested launcher takes precedence over the outer one") {
  CHECK(read(with(slurm, torchrun)).value().rank == 5);
  CHECK(read(with(slurm, open_mpi)).value().rank == 2);
}

TEST_CASE("launchers that contradict each other are refused by name") {
  CHECK(errors(with(slurm, {{"RANK", "3"}, {"WORLD_SIZE", "8"}})).empty());
  CHECK_THAT(errors(with(slurm, {{"RANK", "2"}, {"WORLD_SIZE", "8"}})),
             ContainsSubstring("RANK=2 of WORLD_SIZE=8 and SLURM_PROCID=3 of SLURM_NTASKS=8 contradict each other"));
  CHECK_THAT(errors(with(open_mpi, mpich)),
             ContainsSubstring("OMPI_COMM_WORLD_RANK=2 of OMPI_COMM_WORLD_SIZE=3 and PMI_RANK=1 of PMI_SIZE=2"));
}

TEST_CASE("a missing launcher, and missing or malformed variables, are reported together") {
  CHECK_THAT(errors({}), ContainsSubstring("--distributed: error: expected the variables of a launcher; start it with "
                                           "one of: torchrun --no-python"));
  CHECK_THAT(errors({{"RANK", "1"}}), ContainsSubstring("WORLD_SIZE: error: is not set"));
  const auto text = errors({{"RANK", "x"}, {"WORLD_SIZE", "0"}, {"MASTER_PORT", "70000"}, {"MASTER_ADDR", "a"}});
  for (const char* part : {"RANK: error: is 'x'; expected an integer >= 0", "WORLD_SIZE: error: is '0'", "MASTER_PORT"})
    CHECK_THAT(text, ContainsSubstring(part));
  CHECK_THAT(errors({{"RANK", "4"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}}),
             ContainsSubstring("RANK: error: is 4; expected less than 4, the value of WORLD_SIZE"));
  CHECK_THAT(errors({{"RANK", "1"}, {"WORLD_SIZE", "4"}}), ContainsSubstring("MASTER_ADDR: error: is not set"));
}

TEST_CASE("first_host() expands the first host of a Slurm node list") {
  CHECK(first_host("node7") == "node7");
  CHECK(first_host("a,b") == "a");
  CHECK(first_host("node[03-07,9],other") == "node03");
  CHECK(first_host("rack[1,3]-x,b") == "rack1-x");
}
