/// How the scheduler talks to server and recorder: every request has its error path, which ends the run.
#pragma once
#include "actors/scheduler/scheduler.hpp"
#include <caf/typed_event_based_actor.hpp>
namespace mneme {

template <class Answer, class Message, class Then>
void scheduler_state::ask_server(Message message, Then then) {
  self_->request(peers_.server, caf::infinite, std::move(message))
      .then(
          [this, then](Answer& answer) {
            if (!over_)
              then(std::move(answer));
          },
          [this](const caf::error& why) { finish(run_status::failed, in_words(why)); });
}

template <class Message>
void scheduler_state::tell_server(Message message) {
  self_->request(peers_.server, caf::infinite, std::move(message))
      .then([] {}, [this](const caf::error& why) { finish(run_status::failed, in_words(why)); });
}

template <class Message>
void scheduler_state::tell_recorder(Message message) {
  self_->request(peers_.recorder, caf::infinite, std::move(message))
      .then([] {}, [this](const caf::error& why) { finish(run_status::failed, in_words(why)); });
}

} // namespace mneme
