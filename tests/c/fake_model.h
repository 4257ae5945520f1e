/** A model without weights, and the forward pass's stand-in: `encode` is tested on its own with them. */
#pragma once
#include <atomic>

#include "model/model.h"

/** What the stand-in does; each test starts from the defaults. */
struct fake_forward_t {
    std::atomic<bool> open {true}; /**< While false, calls wait inside. */
    std::atomic<int> inside {0};   /**< Calls inside. */
    std::atomic<int> calls {0};
    std::atomic<int> status {0};     /**< Returned, after the work. */
    std::atomic<int> cpu_class {0};  /**< That the last call was asked for. */
    std::atomic<size_t> threads {0}; /**< That the last call had. */
};
extern fake_forward_t fake_forward;

/** dimensions 4, hidden 8, context 16, token_width 2, two temperature groups, class SERIAL that is not pinned. */
void fake_model(uform_model_t &model);
