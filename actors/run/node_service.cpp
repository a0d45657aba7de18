#include "actors/run/node_service.hpp"
#include "actors/run/process.hpp"
#include "actors/run/run_nodes.hpp"
#include "actors/run/world_facts.hpp"
#include "runtime/base/failure_of.hpp"
#include "runtime/base/tuning.hpp"
#include <nlohmann/json.hpp>
#include <thread>
#include <unistd.h>
namespace mneme {
namespace {

std::string machine_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::int64_t workers_of(std::int64_t threads) {
  return threads > 0 ? threads : std::max<std::int64_t>(1, std::thread::hardware_concurrency());
}

expected<tls_identity_ref> identity_of(const tls_files& files) {
  if (!files.any())
    return tls_identity_ref{};
  return tls_identity::load(files);
}

} // namespace

expected<node_end> serve_as_node(const node_service_settings& settings) {
  prepare_process();
  static_cast<void>(program_facts()); // reads all of the program's file, for which a peer would not wait
  auto identity = identity_of(settings.tls);
  if (!identity)
    return tl::unexpected(identity.error());
  auto service = std::make_unique<node_service>(settings, std::move(*identity));
  const auto port = service->listen();
  if (!port)
    return tl::unexpected(port.error());
  settings.say("listening on " + node_address{.host = settings.listen.host, .port = *port}.text() +
               (settings.tls.any() ? " with TLS" : " without TLS"));
  std::shared_ptr<const void> shown;
  if (settings.show_measurements) {
    auto showing = settings.show_measurements([&service] { return service->measurements(); });
    if (!showing)
      return tl::unexpected(showing.error());
    shown = std::move(*showing);
  }
  service->serve();
  shown.reset();
  if (!service->is_loading())
    return node_end::whole;
  service->remove_files();
  static_cast<void>(service.release()); // its threads go with the process
  return node_end::loading;
}

node_service::node_service(node_service_settings settings, tls_identity_ref identity)
    : settings_(std::move(settings)), loop_(std::move(identity), {}, *this) {}

void node_service::serve() {
  while (!settings_.interrupts || settings_.interrupts->load() == 0)
    if (const auto next = next_happening())
      std::visit([this](const auto& in) { handle(in); }, *next);
  end_session(); // while there is a connection that its actors may use
}

// -- the connections' thread ------------------------------------------------------------------------------------------

void node_service::opened(connection_id id, const std::string& peer, bool /*accepted*/) {
  const std::lock_guard hold(mutex_);
  peers_[id] = peer;
}

/// Work goes to the workers without a detour, once all that came before has been handled.
void node_service::received(connection_id id, archive::buffer message) {
  const auto kind = message->empty() ? node_message::status : static_cast<node_message>(message->front());
  const bool is_work = kind == node_message::start || kind == node_message::release || kind == node_message::abandon;
  std::shared_ptr<node_actors> actors;
  {
    const std::lock_guard hold(mutex_);
    if (is_work && id == working_ && direct_)
      actors = actors_;
  }
  if (actors)
    actors->take(std::move(message));
  else
    add(said{id, std::move(message)});
}

void node_service::closed(connection_id id, const std::string& peer, const std::string& why) {
  {
    const std::lock_guard hold(mutex_);
    peers_.erase(id);
  }
  add(gone{id, peer, why});
}

void node_service::add(happening next) {
  {
    const std::lock_guard hold(mutex_);
    happenings_.push_back(std::move(next));
  }
  changed_.notify_one();
}

// -- the service's thread ---------------------------------------------------------------------------------------------

std::optional<node_service::happening> node_service::next_happening() {
  constexpr std::chrono::milliseconds looks_at_interrupts{100};
  std::unique_lock hold(mutex_);
  direct_ = direct_ || (actors_ && happenings_.empty());
  if (!changed_.wait_for(hold, looks_at_interrupts, [this] { return !happenings_.empty(); }))
    return std::nullopt;
  auto next = std::move(happenings_.front());
  happenings_.pop_front();
  return next;
}

void node_service::refuse(connection_id id, const std::string& why) {
  loop_.send(id, message_of(node_message::refusal, node_refusal{.reasons = {why}}));
  loop_.close(id, why);
}

void node_service::handle(const said& in) {
  if (const auto why = failure_of([&] { take(in); }); !why.empty())
    loop_.close(in.connection, "sends a message that " + why);
}

/// Throws what is wrong with it.
void node_service::take(const said& in) {
  auto content = reader_of(in.message);
  auto kind = node_message::greeting;
  content(kind);
  const bool is_served = session_ && session_->connection == in.connection;
  if (kind == node_message::greeting && !is_served) {
    greet(in.connection, content);
  } else if (!is_served) {
    throw archive_error("comes before a greeting");
  } else if (kind == node_message::offer && !session_->is_offered) {
    take_offer(in, content);
  } else if (kind == node_message::file && !session_->missing.empty()) {
    take_file(content);
  } else if (kind == node_message::begin && session_->context && !actors_) {
    node_layout layout;
    content(layout);
    let_work(layout);
  } else if (kind >= node_message::start && kind <= node_message::abandon && actors_) {
    return actors_->take(in.message);
  } else if (kind == node_message::interrupt) {
    session_->interrupts = 1;
  } else {
    throw archive_error("has no place here");
  }
  loop_.consumed(in.connection, in.message->size());
}

void node_service::take_offer(const said& in, archive& content) {
  session_->is_offered = true;
  content(session_->offer);
  content.expect_end();
  for (const auto& file : session_->offer.files)
    if (files_.find(file).empty())
      session_->missing.push_back(file.key);
  if (session_->missing.empty())
    load();
  else
    loop_.send(in.connection, message_of(node_message::wanted_files, wanted_files{.keys = session_->missing}));
}

void node_service::take_file(archive& content) {
  file_content file;
  content(file);
  content.expect_end();
  if (std::erase(session_->missing, file.key) == 0)
    throw archive_error("has a file that was not asked for");
  for (const auto& offered : session_->offer.files)
    if (offered.key == file.key)
      files_.put(offered, file.bytes);
  if (session_->missing.empty())
    load();
}

void node_service::greet(connection_id id, archive& content) {
  node_greeting in;
  content(in);
  content.expect_end();
  loop_.trust(id);
  if (in.role == peer_role::asking) {
    loop_.send(id, message_of(node_message::status, node_status{.json = status()}));
    return loop_.close(id, "");
  }
  loop_.send(id, message_of(node_message::greeting, node_greeting{.role = peer_role::node,
                                                                  .name = machine_name(),
                                                                  .program = program_facts(),
                                                                  .workers = workers_of(settings_.threads)}));
  if (const auto differing = differences(in.program, program_facts()); !differing.empty())
    return loop_.close(id, "is another program: this node " + differing.front());
  if (session_)
    return refuse(id, "works for another run, of " + session_->peer);
  {
    const std::lock_guard hold(mutex_);
    session_ = std::make_shared<node_session>(id, "the run at " + peers_[id]);
  }
  settings_.say("serves " + session_->peer);
}

/// On a thread of its own: meanwhile peers are answered, and the run may go.
void node_service::load() {
  ++loading_;
  loader_ = std::jthread([this, session = session_, before = std::move(loader_)]() mutable {
    if (before.joinable())
      before.join();
    loaded done{.session = std::move(session)};
    const auto why = failure_of([&] {
      prepare_process();
      done.world = done.session->load(files_, settings_.native_code);
      if (done.world)
        done.facts = world_facts(**done.world); // reads all data
    });
    if (!why.empty())
      done.world = failed("", why);
    --loading_;
    add(std::move(done));
  });
}

void node_service::handle(const loaded& in) {
  if (in.session != session_)
    return;
  auto& session = *session_;
  if (in.world) {
    session.context = *in.world;
    loop_.send(session.connection, message_of(node_message::ready, ready_node{.world = in.facts}));
    return settings_.say("has loaded " + session.offer.name);
  }
  node_refusal refusal;
  for (const auto& wrong : in.world.error())
    refusal.reasons.push_back("cannot load the scenario: " + diagnostic_text(wrong));
  const auto first = refusal.reasons.front();
  loop_.send(session.connection, message_of(node_message::refusal, std::move(refusal)));
  loop_.close(session.connection, "was refused: this node " + first);
}

void node_service::let_work(const node_layout& layout) {
  session_->lay_out(layout, workers_of(settings_.threads));
  const auto id = session_->connection;
  session_->context->gate = std::make_shared<result_gate>(
      [this, id] { return loop_.figures(id).waiting_bytes() > tuning::node_results_bytes; });
  auto actors = std::make_shared<node_actors>(
      session_->context, uplink_hooks{.send = [this, id](archive message) { loop_.send(id, std::move(message)); },
                                      .consumed = [this, id](std::size_t bytes) { loop_.consumed(id, bytes); },
                                      .fail = [this, id](std::string why) { loop_.close(id, std::move(why)); }});
  const std::lock_guard hold(mutex_);
  working_ = id;
  actors_ = std::move(actors);
  busy_ns_ = session_->context->busy_ns;
  ++runs_;
}

void node_service::handle(const gone& in) {
  const bool is_served = session_ && session_->connection == in.connection;
  if (!in.why.empty())
    settings_.say((is_served ? session_->peer : "peer " + in.peer) + ": " + in.why);
  if (!is_served)
    return;
  end_session();
  settings_.say("waits for the next run");
}

void node_service::end_session() {
  if (!session_)
    return;
  session_->interrupts = 1;
  std::shared_ptr<node_actors> ended;
  {
    const std::lock_guard hold(mutex_);
    working_ = 0;
    direct_ = false;
    ended.swap(actors_);
  }
  ended.reset(); // waits for batches that are at work
  session_.reset();
}

std::vector<measurement> node_service::measurements() {
  using enum measurement::kind;
  const std::lock_guard hold(mutex_);
  const auto traffic = loop_.figures(working_);
  const auto figure = [](const char* name, const char* help, measurement::kind of_kind, double value) {
    return measurement{.name = name, .help = help, .of_kind = of_kind, .samples = {{.labels = {}, .value = value}}};
  };
  return {
      figure("mneme_node_workers", "Threads that compute.", gauge, static_cast<double>(workers_of(settings_.threads))),
      figure("mneme_node_working", "1 while the node computes for a run.", gauge, actors_ ? 1.0 : 0.0),
      figure("mneme_node_runs_total", "Runs that it has computed for.", counter, static_cast<double>(runs_)),
      figure("mneme_node_busy_seconds", "Time in batches, all workers together, in the latest run.", gauge,
             busy_ns_ ? 1e-9 * static_cast<double>(busy_ns_->load()) : 0.0),
      figure("mneme_node_queued_batches", "Batches that wait for a worker.", gauge,
             actors_ ? static_cast<double>(actors_->queued_batches()) : 0.0),
      figure("mneme_node_sent_bytes", "To the run at work.", gauge, static_cast<double>(traffic.bytes_sent)),
      figure("mneme_node_received_bytes", "From the run at work.", gauge, static_cast<double>(traffic.bytes_received)),
      figure("mneme_node_waiting_bytes", "Results that wait for the network.", gauge,
             static_cast<double>(traffic.waiting_bytes()))};
}

std::string node_service::status() const {
  nlohmann::ordered_json object{{"name", machine_name()}, {"workers", workers_of(settings_.threads)}};
  for (const auto& [name, value] : program_facts())
    object[name] = value;
  object["state"] = !session_ ? "waits" : working_ == 0 ? "loads" : "works";
  if (session_) {
    object["scenario"] = session_->offer.name;
    if (session_->context)
      object["busy_seconds"] = 1e-9 * static_cast<double>(session_->context->busy_ns->load());
  }
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace); // a run chose its name
}

// -- asking -----------------------------------------------------------------------------------------------------------

namespace {

/// The object that a node says of itself, as it may be printed.
expected<std::string> one_line_of(const std::string& status) {
  const auto object = nlohmann::ordered_json::parse(status, nullptr, false);
  if (!object.is_object())
    return failed("", "answers something else than a JSON object");
  return object.dump();
}

/// Asks once, and waits for the answer or for the end.
class status_question final : public connection_watcher {
public:
  void opened(connection_id id, const std::string& /*peer*/, bool /*accepted*/) override {
    loop->send(
        id, message_of(node_message::greeting, node_greeting{.role = peer_role::asking, .program = program_facts()}));
  }
  void received(connection_id /*id*/, archive::buffer message) override {
    const auto why = failure_of([&] {
      auto content = reader_of(message);
      auto kind = node_message::greeting;
      node_status status;
      content(kind)(status);
      end(kind == node_message::status ? one_line_of(status.json) : failed("", "answers something else"));
    });
    if (!why.empty())
      end(failed("", "sends a message that " + why));
  }
  void closed(connection_id /*id*/, const std::string& /*peer*/, const std::string& why) override {
    end(failed("", why));
  }
  [[nodiscard]] expected<std::string> answer() {
    std::unique_lock hold(mutex_);
    changed_.wait(hold, [this] { return answer_.has_value(); });
    return *answer_;
  }
  connection_loop* loop = nullptr;

private:
  void end(expected<std::string> with) {
    const std::lock_guard hold(mutex_);
    if (!answer_)
      answer_ = std::move(with);
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<expected<std::string>> answer_;
};

} // namespace

expected<std::string> status_of_node(const node_address& address, const tls_files& tls) {
  auto identity = identity_of(tls);
  if (!identity)
    return tl::unexpected(identity.error());
  static_cast<void>(program_facts()); // as above
  status_question question;
  connection_loop loop(std::move(*identity), {}, question);
  question.loop = &loop;
  const auto place = loop.place_of(address);
  if (!place)
    return tl::unexpected(place.error());
  loop.connect(*place);
  auto answer = question.answer();
  if (!answer)
    answer.error().front().where = "node " + address.text();
  return answer;
}

} // namespace mneme
