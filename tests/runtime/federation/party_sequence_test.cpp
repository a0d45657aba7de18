#include "runtime/federation/party_sequence.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

TEST_CASE("the server steps first, then the other parties, and the next turn begins with the server") {
  const std::vector<party_id> further{party_id::proxy};
  party_sequence turn(further);
  for (int round = 0; round < 2; ++round) {
    turn.begin();
    CHECK(turn.current() == party_id::server);
    CHECK(turn.advance_party());
    CHECK(turn.current() == party_id::proxy);
    CHECK_FALSE(turn.advance_party());
    CHECK(turn.current() == party_id::server);
  }
}

TEST_CASE("without other parties the turn consists of the server") {
  const std::vector<party_id> further;
  party_sequence turn(further);
  CHECK_FALSE(turn.advance_party());
  CHECK(turn.current() == party_id::server);
}
