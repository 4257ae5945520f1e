/** A team of the calling thread alone. */
#pragma once
#include "floating_point.h"
#include "memory.h"
#include "team.h"

namespace uform {

class serial_team_t final : public team_t {
  public:
    size_t threads() const noexcept override { return 1; }
    void run(body_t body, void *context) noexcept override {
        floating_point_guard_t guard;
        body(context, 0);
    }
    void barrier() noexcept override {}
    std::byte *scratch(size_t slot, size_t bytes) noexcept override { return blocks_[slot].reserve(bytes); }

    /** See `memory_block_t::abandon`. */
    void abandon() noexcept {
        for (memory_block_t &block : blocks_) block.abandon();
    }

  private:
    memory_block_t blocks_[2];
};

} // namespace uform
