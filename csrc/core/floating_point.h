/** The floating-point environment of kernels. */
#pragma once
#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace uform {

/**
 *  Sets the default environment (round to nearest, denormals kept, no traps) and puts the thread's own back, so that no
 *  output depends on what the caller's thread, or another library on it, chose.
 */
class floating_point_guard_t {
  public:
#if defined(__x86_64__)
    floating_point_guard_t() noexcept : saved_(_mm_getcsr()) { _mm_setcsr(0x1F80); }
    ~floating_point_guard_t() { _mm_setcsr(saved_); }
#elif defined(__aarch64__)
    floating_point_guard_t() noexcept {
        __asm__ volatile("mrs %0, fpcr" : "=r"(saved_));
        __asm__ volatile("msr fpcr, %0" ::"r"(uint64_t(0)));
    }
    ~floating_point_guard_t() { __asm__ volatile("msr fpcr, %0" ::"r"(saved_)); }
#else
    floating_point_guard_t() noexcept = default;
#endif
    floating_point_guard_t(floating_point_guard_t const &) = delete;
    floating_point_guard_t &operator=(floating_point_guard_t const &) = delete;

#if defined(__x86_64__)
  private:
    uint32_t saved_;
#elif defined(__aarch64__)
  private:
    uint64_t saved_;
#endif
};

} // namespace uform
