#include "tape.h"

#include "failure.h"

namespace uform {

uform_status_t check_tape(uform_tape_t const &tape, char const *name) noexcept {
    constexpr uform_status_t invalid_k = uform_invalid_argument_k;
    if (!tape.data && tape.length)
        return fail(invalid_k, UFORM_NO_ITEM, "%s: data is NULL, but its length is %zu", name, tape.length);
    if (!tape.offsets) {
        if (tape.count == 0) return uform_success_k;
        return fail(invalid_k, UFORM_NO_ITEM, "%s: offsets are NULL, but there are %zu items", name, tape.count);
    }
    if (tape.offsets[0] != 0)
        return fail(invalid_k, tape.count ? 0 : UFORM_NO_ITEM, "%s: the first offset is %zu, not 0", name,
                    tape.offsets[0]);
    size_t begin = 0;
    for (size_t item = 0; item != tape.count; ++item) {
        size_t const end = tape.offsets[item + 1];
        if (end < begin)
            return fail(invalid_k, item, "%s: item %zu ends at %zu, before its start at %zu", name, item, end, begin);
        if (end > tape.length)
            return fail(invalid_k, item, "%s: item %zu ends at %zu, past the %zu bytes of the data", name, item, end,
                        tape.length);
        begin = end;
    }
    return uform_success_k;
}

} // namespace uform
