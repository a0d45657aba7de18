#include "actors/nodes/node_session.hpp"
#include "runtime/base/digest.hpp"
#include "tests/support/module_files.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* scenario_with_module = R"(
clients.count = 4
rounds = { per_task = 1, cohort = 4 }
tasks.kind = "single"
partition.kind = "iid"
strategy.name = "fedavg"
data = { name = "synthetic", shape = [1, 6, 6], rows = 40 }
)";

/// Error of a node for a run whose module a peer has sent.
std::string answer_to(const std::string& module) {
  node_files files;
  const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(module.data()),
                                     reinterpret_cast<const std::byte*>(module.data()) + module.size());
  const offered_file file{.key = "model.module", .extension = ".pt2", .content = digest_of(bytes)};
  files.put(file, bytes);
  node_session session;
  session.offer = {.name = "offered", .scenario = scenario_with_module, .files = {file}};
  const auto loaded = session.load(files, false);
  return loaded ? "" : diagnostic_text(loaded.error().front());
}

} // namespace

TEST_CASE("a node rejects a module that would map a file, and no file is written") {
  const scratch_folder folder;
  const auto stolen = (folder.path() / "stolen").string();
  made_program made;
  made.call("from_file.default", {{"filename", {{"as_string", stolen}}}, {"shared", flag(true)}, {"size", number(4)}});
  CHECK_THAT(answer_to(made.bytes()),
             ContainsSubstring("torch.ops.aten.from_file.default (v0): it is none of the operators"));
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a node opens neither files nor a backbone scenario that an offered scenario names") {
  const scratch_folder folder;
  const auto secret = folder.path() / "secret.csv";
  write_file(secret, "client,row\nhidden words,1\n");
  const node_files files;
  const auto answer = [&](const std::string& text) {
    node_session session;
    session.offer = {.name = "offered", .scenario = text + scenario_with_module};
    const auto loaded = session.load(files, false);
    return loaded ? std::string() : diagnostic_text(loaded.error().front());
  };
  CHECK(answer("").empty());
  CHECK_THAT(answer("extends = \"" + secret.string() + "\"\n"),
             ContainsSubstring("extends: not allowed in a scenario received"));
  for (const char* const key :
       {"partition.file", "model.weights", "model.seed_weights", "model.backbone", "devices.availability_file"})
    CHECK_THAT(answer(fmt::format("{} = \"{}\"\n", key, secret.string())),
               ContainsSubstring(std::string(key) + " names a file of another machine"));
}

TEST_CASE("a node accepts a module that computes and rejects one that does not") {
  CHECK(answer_to(scaled_rows().bytes()).empty());
  made_program made;
  made.call("view.default", {{"self", tensor_named("x")}, {"size", numbers({5})}});
  CHECK_THAT(answer_to(made.bytes()), ContainsSubstring("forward failed on rows of shape [16, 1, 6, 6]"));
}

TEST_CASE("a node without --native-code accepts a run that allows native code but has no module") {
  const node_files files;
  node_session session;
  session.offer = {.name = "offered", .scenario = std::string("model.native_code = true\n") + scenario_with_module};
  CHECK(session.load(files, false));
}
