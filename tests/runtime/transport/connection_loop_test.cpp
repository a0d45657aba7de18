#include "runtime/transport/connection_loop.hpp"
#include "tests/support/scratch.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <condition_variable>
using namespace mneme;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Records events, and waits for them.
class witness final : public connection_watcher {
  template <class Ready, class Take>
  auto waited(Ready ready, Take take) {
    std::unique_lock hold(mutex_);
    if (!changed_.wait_for(hold, std::chrono::seconds(20), ready))
      throw std::runtime_error("waited for something that has not happened");
    return take();
  }

public:
  void opened(connection_id which, const std::string& /*peer*/, bool /*accepted*/) override {
    note([&] { opened_.push_back(which); });
  }
  void received(connection_id /*which*/, archive::buffer message) override {
    note([&] { messages_.push_back(std::move(message)); });
  }
  void closed(connection_id which, const std::string& /*peer*/, const std::string& why, bool may_retry) override {
    note([&] {
      reasons_[which] = why;
      may_retry_[which] = may_retry;
    });
  }
  connection_id next_opened() {
    return waited([&] { return !opened_.empty(); },
                  [&] {
                    const auto which = opened_.front();
                    opened_.erase(opened_.begin());
                    return which;
                  });
  }
  archive::buffer next_message() {
    return waited([&] { return !messages_.empty(); },
                  [&] {
                    auto message = messages_.front();
                    messages_.erase(messages_.begin());
                    return message;
                  });
  }
  std::string reason(connection_id which) {
    return waited([&] { return reasons_.contains(which); }, [&] { return reasons_.at(which); });
  }
  bool may_retry(connection_id which) {
    return waited([&] { return may_retry_.contains(which); }, [&] { return may_retry_.at(which); });
  }
  /// Reason of any closed connection.
  std::string any_reason() {
    return waited([&] { return !reasons_.empty(); }, [&] { return reasons_.begin()->second; });
  }

private:
  template <class Act>
  void note(Act act) {
    const std::lock_guard hold(mutex_);
    act();
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<connection_id> opened_;
  std::vector<archive::buffer> messages_;
  std::map<connection_id, std::string> reasons_;
  std::map<connection_id, bool> may_retry_;
};

const node_address any_port{.host = "127.0.0.1", .port = 0};

resolved_node place_of(std::uint16_t port) {
  return {.host = "127.0.0.1", .addresses = resolved({.host = "127.0.0.1", .port = port}).value()};
}

tls_identity_ref identity_in(const std::filesystem::path& folder, const std::filesystem::path& authority) {
  return tls_identity::load({.certificate = folder / "node.pem", .key = folder / "node.key", .authority = authority})
      .value();
}

/// Both ends of a connection, each with its own identity.
struct two_ends {
  witness server_sees, client_sees;
  connection_loop server, client;
  connection_id which = 0;
  two_ends(const tls_identity_ref& of_server, const tls_identity_ref& of_client, const connection_limits& limits = {})
      : server(of_server, limits, server_sees), client(of_client, {}, client_sees) {
    which = client.connect(place_of(server.listen(any_port).value()));
  }
};

archive numbers(std::size_t count) {
  std::vector<std::uint32_t> content(count);
  for (std::uint32_t i = 0; i < count; ++i)
    content[i] = i * i;
  archive made;
  made.plain(content);
  return made;
}

/// Sends a message over the connection and checks its content.
void check_a_message(two_ends& ends) {
  const auto there = ends.server_sees.next_opened();
  ends.server.mark_authenticated(there);
  ends.client.mark_authenticated(ends.client_sees.next_opened());
  ends.client.send(ends.which, numbers(3'000'000)); // 12 MB
  const auto message = ends.server_sees.next_message();
  CHECK((*message == *numbers(3'000'000).contents()));
  ends.server.send(there, numbers(3));
  CHECK((*ends.client_sees.next_message() == *numbers(3).contents()));
}

} // namespace

TEST_CASE("messages pass over a plain loopback connection") {
  two_ends ends(nullptr, nullptr);
  check_a_message(ends);
}

TEST_CASE("messages pass between two peers with certificates of the same authority") {
  const test::scratch_folder folder;
  REQUIRE(make_keys(folder.path()));
  const auto mine = identity_in(folder.path(), folder.path() / "ca.pem");
  two_ends ends(mine, mine);
  check_a_message(ends);
}

TEST_CASE("a peer with a certificate of another authority is rejected on both sides") {
  const test::scratch_folder ours, theirs;
  REQUIRE(make_keys(ours.path()));
  REQUIRE(make_keys(theirs.path()));
  const auto mine = identity_in(ours.path(), ours.path() / "ca.pem");
  {
    two_ends ends(mine, identity_in(theirs.path(), ours.path() / "ca.pem")); // only the peer trusts us
    CHECK_THAT(ends.server_sees.any_reason(), ContainsSubstring("certificate that is not accepted"));
    CHECK_THAT(ends.client_sees.reason(ends.which), ContainsSubstring("alert"));
    CHECK_FALSE(ends.client_sees.may_retry(ends.which));
  }
  {
    two_ends ends(mine, identity_in(theirs.path(), theirs.path() / "ca.pem"));
    CHECK_THAT(ends.client_sees.reason(ends.which), ContainsSubstring("certificate that is not accepted"));
  }
}

TEST_CASE("messages pass between two peers with the same secret") {
  const auto mine = tls_identity::load({.secret = "0123456789abcdef"}).value();
  two_ends ends(mine, mine);
  check_a_message(ends);
}

TEST_CASE("a peer with another secret, or with a certificate, is rejected on both sides") {
  const auto mine = tls_identity::load({.secret = "0123456789abcdef"}).value();
  const test::scratch_folder folder;
  REQUIRE(make_keys(folder.path()));
  for (const auto& other : {tls_identity::load({.secret = "0123456789abcdeF"}).value(),
                            identity_in(folder.path(), folder.path() / "ca.pem")}) {
    two_ends ends(mine, other);
    CHECK_THAT(ends.server_sees.any_reason(), ContainsSubstring("does not have the same secret"));
    CHECK_FALSE(ends.client_sees.reason(ends.which).empty());
    CHECK_FALSE(ends.client_sees.may_retry(ends.which));
  }
  two_ends reversed(identity_in(folder.path(), folder.path() / "ca.pem"), mine);
  CHECK_THAT(reversed.client_sees.reason(reversed.which), ContainsSubstring("does not have the same secret"));
}

TEST_CASE("plain and encrypted peers reject each other with a reason") {
  const test::scratch_folder folder;
  REQUIRE(make_keys(folder.path()));
  const auto mine = identity_in(folder.path(), folder.path() / "ca.pem");
  {
    two_ends ends(mine, nullptr);
    CHECK_THAT(ends.server_sees.any_reason(), ContainsSubstring("TLS"));
  }
  {
    two_ends ends(nullptr, mine);
    CHECK(ends.server_sees.any_reason() == "does not speak mneme's protocol");
  }
}

TEST_CASE("a peer that does not authenticate, or falls silent, is disconnected") {
  const connection_limits hasty{.handshake_timeout = std::chrono::milliseconds(300),
                                .idle_timeout = std::chrono::milliseconds(300)};
  {
    two_ends ends(nullptr, nullptr, hasty); // open, but not authenticated
    CHECK(ends.server_sees.any_reason() == "does not identify itself");
  }
  witness sees;
  connection_loop loop(nullptr, hasty, sees);
  const auto port = loop.listen(any_port).value();
  const auto place = place_of(port).addresses.front();
  const owned_descriptor mute(::socket(AF_INET, SOCK_STREAM, 0));
  REQUIRE(::connect(mute.get(), place.get(), place.size) == 0);
  CHECK(sees.any_reason() == "does not identify itself");
}

TEST_CASE("close() lets the peer read the last message, although it still sends") {
  two_ends ends(nullptr, nullptr);
  const auto there = ends.server_sees.next_opened();
  ends.server.mark_authenticated(there);
  ends.client.mark_authenticated(ends.client_sees.next_opened());
  ends.server.send(there, numbers(1'000'000));
  ends.server.close(there, "the run is over");
  ends.client.send(ends.which, numbers(1'000'000)); // the server never acknowledges these bytes
  CHECK((*ends.client_sees.next_message() == *numbers(1'000'000).contents()));
  CHECK(ends.client_sees.reason(ends.which) == "has closed the connection");
  CHECK(ends.server_sees.reason(there) == "the run is over");
}

TEST_CASE("close() waits for the peer's end of the connection, but at most for a second") {
  for (const bool peer_closes : {true, false}) {
    witness sees;
    connection_loop loop(nullptr, {}, sees);
    const auto place = place_of(loop.listen(any_port).value()).addresses.front();
    owned_descriptor peer(::socket(AF_INET, SOCK_STREAM, 0));
    REQUIRE(::connect(peer.get(), place.get(), place.size) == 0);
    constexpr std::string_view preamble{"mneme\n\x03\0", 8};
    REQUIRE(::send(peer.get(), preamble.data(), preamble.size(), 0) == 8);
    const auto there = sees.next_opened();
    loop.close(there, "the run is over");
    std::array<char, 64> received{};
    while (::recv(peer.get(), received.data(), received.size(), 0) > 0) {
    }
    CHECK(::send(peer.get(), preamble.data(), preamble.size(), 0) == 8);            // the socket is still open
    CHECK(::recv(peer.get(), received.data(), received.size(), MSG_DONTWAIT) == 0); // no reset
    if (peer_closes)
      peer = owned_descriptor();
    CHECK(sees.reason(there) == "the run is over");
  }
}

TEST_CASE("silent unknown peers do not block other connections, however many connect") {
  witness sees, client_sees;
  connection_loop loop(nullptr, {}, sees), client(nullptr, {}, client_sees);
  const auto place = place_of(loop.listen(any_port).value());
  const auto address = place.addresses.front();
  std::vector<owned_descriptor> mute;
  for (std::size_t i = 0; i < 2 * connection_loop::unauthenticated_max; ++i) {
    mute.emplace_back(::socket(AF_INET, SOCK_STREAM, 0));
    REQUIRE(::connect(mute.back().get(), address.get(), address.size) == 0);
  }
  CHECK(sees.any_reason() == "has not identified itself, while too many other peers connect");
  client.connect(place);
  loop.mark_authenticated(sees.next_opened());
  client.mark_authenticated(client_sees.next_opened());
}

TEST_CASE("messages of a peer are limited in size until it is trusted") {
  two_ends ends(nullptr, nullptr);
  ends.client.send(ends.which, numbers(100'000));
  CHECK_THAT(ends.server_sees.any_reason(), ContainsSubstring("announces a message of 400008 bytes; at most 65536"));
}

TEST_CASE("connecting to a port without a listener fails") {
  witness sees;
  connection_loop loop(nullptr, {}, sees);
  const auto which = loop.connect(place_of(1));
  CHECK_THAT(sees.reason(which), ContainsSubstring("cannot be reached: Connection refused"));
}

TEST_CASE("every address of a host is tried, and the error is that of the last one") {
  witness server_sees, sees;
  connection_loop server(nullptr, {}, server_sees), loop(nullptr, {}, sees);
  auto place = place_of(1);
  place.addresses.push_back(place_of(1).addresses.front());
  CHECK_THAT(sees.reason(loop.connect(place)), ContainsSubstring("cannot be reached: Connection refused"));
  place.addresses.push_back(place_of(server.listen(any_port).value()).addresses.front());
  const auto opened = loop.connect(place);
  CHECK(sees.next_opened() == opened);
}

TEST_CASE("without TLS files only the loopback is allowed, and invalid files are named") {
  witness sees;
  connection_loop loop(nullptr, {}, sees);
  CHECK_THAT(loop.listen({.host = "0.0.0.0", .port = 0}).error().front().text,
             ContainsSubstring("not on the loopback"));
  CHECK_THAT(loop.place_of({.host = "192.0.2.1", .port = 1}).error().front().text,
             ContainsSubstring("expected MNEME_SECRET="));
  const auto found = tls_identity::load({.certificate = "/there/is/none", .key = "", .authority = "/dev/null"});
  REQUIRE_FALSE(found);
  REQUIRE(found.error().size() == 3);
  CHECK(found.error()[0].where == "--cert");
  CHECK_THAT(found.error()[1].text, ContainsSubstring("is missing"));
  CHECK_THAT(found.error()[0].text, ContainsSubstring("'/there/is/none' cannot be read: No such file or directory"));
  CHECK_THAT(found.error()[2].text, ContainsSubstring("'/dev/null' is a device; expected an ordinary file"));
}

TEST_CASE("key files are never overwritten and readable only by their owner") {
  const test::scratch_folder folder;
  REQUIRE(make_keys(folder.path() / "keys"));
  for (const char* name : {"ca.key", "node.key"})
    CHECK((std::filesystem::status(folder.path() / "keys" / name).permissions() & std::filesystem::perms(077)) ==
          std::filesystem::perms::none);
  const auto again = make_keys(folder.path() / "keys");
  REQUIRE_FALSE(again);
  CHECK_THAT(again.error().front().text, ContainsSubstring("already exists"));
}
