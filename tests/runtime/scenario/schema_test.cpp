#include "runtime/method/strategy.hpp"
#include "runtime/scenario/schema.hpp"
#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>
using json = nlohmann::ordered_json;

TEST_CASE("the schema has every key with its type, range, words and default") {
  const auto schema = json::parse(mneme::scenario_schema_text());
  const auto& sections = schema.at("properties");
  CHECK(schema.at("additionalProperties") == false);
  CHECK(sections.at("seed").at("type") == "integer");
  CHECK(sections.at("seed").at("minimum") == 0.0);
  CHECK(sections.at("training").at("properties").at("batch").at("maximum") == 1e9);
  CHECK(sections.at("training").at("properties").at("learning_rate").at("maximum") == 1e12);
  const auto& partition = sections.at("partition").at("properties");
  CHECK(partition.at("beta").at("type") == "number");
  CHECK(partition.at("kind").at("enum").at(0) == "dirichlet");
  CHECK(partition.at("kind").at("default") == "dirichlet");
  const auto& devices = sections.at("devices").at("properties");
  CHECK(devices.at("rows_per_second").at("anyOf").size() == 3);
  CHECK(devices.at("rows_per_second").at("default").at("median") == 2000.0);
  CHECK(devices.at("latency").at("default") == "50 ms");
  CHECK(sections.at("tasks").at("properties").at("class_order").at("anyOf").at(1).at("items").at("type") == "integer");
}

TEST_CASE("the schema of each method has its own keys and no others") {
  const auto schema = json::parse(mneme::scenario_schema_text());
  const auto& choices = schema.at("properties").at("strategy").at("allOf");
  CHECK(choices.size() == mneme::strategies().size());
  for (const auto& choice : choices) {
    const auto name = choice.at("if").at("properties").at("name").at("const").get<std::string>();
    const auto& own = choice.at("then").at("properties");
    if (name == "fedprox" || name == "fedavg")
      CHECK(own.contains("mu") == (name == "fedprox"));
    CHECK(own.contains("weighting"));
    CHECK(choice.at("then").at("additionalProperties") == false);
  }
}
