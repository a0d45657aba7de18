#include "actors/run/checkpoint_writer.hpp"
#include <caf/typed_event_based_actor.hpp>
namespace mneme {

checkpoint_writer_actor::behavior_type checkpoint_writer_state::make_behavior() {
  return {
      [this](const write_checkpoint& checkpoint) -> caf::result<void> {
        try {
          folder_->write(checkpoint.parts);
          return {};
        } catch (const std::exception& e) {
          return caf::make_error(run_errc::recorder_failed,
                                 std::string(e.what()) + "; the run goes on, and the checkpoints before are whole");
        }
      },
  };
}

} // namespace mneme
