#include "media/resize_rows_simd.h"

namespace uform {

constinit resize_rows_t const resize_rows_serial = {add, add_twice, columns, round};

} // namespace uform
