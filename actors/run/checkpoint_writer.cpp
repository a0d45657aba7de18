#include "actors/run/checkpoint_writer.hpp"
#include "runtime/base/exception_message.hpp"
#include <caf/typed_event_based_actor.hpp>
namespace mneme {

checkpoint_writer_actor::behavior_type checkpoint_writer_state::make_behavior() {
  return {
      [this](const write_checkpoint& checkpoint) -> caf::result<void> {
        if (const auto reason = exception_message_of([&] { folder_->write(checkpoint.parts); }); !reason.empty())
          return caf::make_error(run_errc::recorder_failed,
                                 reason + "; the run continues, and earlier checkpoints are intact");
        return {};
      },
  };
}

} // namespace mneme
