/** Members of the public enumerations as numbers. */
#pragma once
#include <cstring>

namespace uform {

/** C callers may pass any number where C++ has loads of none but the members defined: look before it is loaded. */
template <typename enumeration_type_> int number_of(enumeration_type_ const &member) noexcept {
    static_assert(sizeof(enumeration_type_) == sizeof(int));
    int number;
    std::memcpy(&number, &member, sizeof(number));
    return number;
}

} // namespace uform
