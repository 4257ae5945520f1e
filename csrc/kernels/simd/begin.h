/** From here to `end.h`, functions are compiled for the instruction sets that UFORM_TARGET names. No include guard. */
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target(UFORM_TARGET))), apply_to = function)
#else
// The pragma takes a literal only: the name is expanded on the way into _Pragma.
#define UFORM_STRING(text) #text
#define UFORM_PRAGMA(text) _Pragma(UFORM_STRING(text))
#pragma GCC push_options
UFORM_PRAGMA(GCC target(UFORM_TARGET))
#undef UFORM_PRAGMA
#undef UFORM_STRING
#endif
