#include "json.h"

#include <charconv>

namespace uform {
namespace {

bool is_digit(char letter) noexcept { return letter >= '0' && letter <= '9'; }

void append_utf8(std::string &value, uint32_t point) {
    auto const tail = [&](unsigned shift) { value += static_cast<char>(0x80u | (point >> shift & 0x3fu)); };
    if (point < 0x80) value += static_cast<char>(point);
    else if (point < 0x800) value += static_cast<char>(0xc0u | point >> 6), tail(0);
    else if (point < 0x10000) value += static_cast<char>(0xe0u | point >> 12), tail(6), tail(0);
    else value += static_cast<char>(0xf0u | point >> 18), tail(12), tail(6), tail(0);
}

} // namespace

bool is_utf8(std::string_view bytes) noexcept {
    for (size_t i = 0; i != bytes.size();) {
        auto const lead = static_cast<unsigned char>(bytes[i++]);
        if (lead < 0x80) continue;
        unsigned const tails = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
        if (lead < 0xc2 || lead > 0xf4 || bytes.size() - i < tails) return false;
        auto const second = static_cast<unsigned char>(bytes[i]);
        if (lead == 0xe0 && second < 0xa0) return false; // Overlong.
        if (lead == 0xed && second > 0x9f) return false; // Surrogates.
        if (lead == 0xf0 && second < 0x90) return false; // Overlong.
        if (lead == 0xf4 && second > 0x8f) return false; // Past the last code point.
        for (unsigned tail = 0; tail != tails; ++tail)
            if ((static_cast<unsigned char>(bytes[i++]) & 0xc0u) != 0x80u) return false;
    }
    return true;
}

bool json_reader_t::fail(char const *reason) noexcept {
    if (!error_) error_ = reason;
    return false;
}

void json_reader_t::skip_space() noexcept {
    while (position_ != text_.size()) {
        char const letter = text_[position_];
        if (letter != ' ' && letter != '\n' && letter != '\r' && letter != '\t') return;
        ++position_;
    }
}

bool json_reader_t::enter(char bracket) noexcept {
    if (error_) return false;
    skip_space();
    if (position_ == text_.size() || text_[position_] != bracket)
        return fail(bracket == '{' ? "an object is expected" : "an array is expected");
    if (depth_ == most_depth_k) return fail("nested too deeply");
    ++position_;
    first_[depth_++] = true;
    return true;
}

bool json_reader_t::next(char closing) noexcept {
    if (error_) return false;
    skip_space();
    bool const first = first_[depth_ - 1];
    if (position_ != text_.size() && text_[position_] == closing) {
        ++position_;
        --depth_;
        return false;
    }
    if (!first) {
        if (position_ == text_.size() || text_[position_] != ',')
            return fail("a comma or a closing bracket is expected");
        ++position_;
        skip_space();
    }
    first_[depth_ - 1] = false;
    return true;
}

bool json_reader_t::next_member(std::string &key) {
    if (!next('}') || !read_string(key)) return false;
    skip_space();
    if (position_ == text_.size() || text_[position_] != ':') return fail("a colon is expected");
    ++position_;
    return true;
}

bool json_reader_t::next_element() noexcept { return next(']'); }

bool json_reader_t::read_unit(uint32_t &unit) noexcept {
    if (text_.size() - position_ < 4) return fail("an escape is cut short");
    char const *begin = text_.data() + position_;
    auto const [end, error] = std::from_chars(begin, begin + 4, unit, 16);
    if (error != std::errc() || end != begin + 4) return fail("an escape has letters that are no hexadecimal digits");
    position_ += 4;
    return true;
}

bool json_reader_t::read_escape(std::string &value) {
    if (position_ == text_.size()) return fail("a string does not end");
    switch (char const letter = text_[position_++]) {
    case '"':
    case '\\':
    case '/': value += letter; return true;
    case 'b': value += '\b'; return true;
    case 'f': value += '\f'; return true;
    case 'n': value += '\n'; return true;
    case 'r': value += '\r'; return true;
    case 't': value += '\t'; return true;
    case 'u': break;
    default: return fail("an escape that is unknown");
    }
    uint32_t point = 0, low = 0;
    if (!read_unit(point)) return false;
    if (point >= 0xd800 && point < 0xdc00) {
        if (text_.substr(position_, 2) != "\\u") return fail("half of a surrogate pair");
        position_ += 2;
        if (!read_unit(low)) return false;
        if (low < 0xdc00 || low > 0xdfff) return fail("half of a surrogate pair");
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    }
    else if (point >= 0xdc00 && point < 0xe000) return fail("half of a surrogate pair");
    append_utf8(value, point);
    return true;
}

bool json_reader_t::read_string(std::string &value) {
    if (error_) return false;
    skip_space();
    if (position_ == text_.size() || text_[position_] != '"') return fail("a string is expected");
    ++position_;
    value.clear();
    for (;;) {
        size_t const begin = position_;
        while (position_ != text_.size() && text_[position_] != '"' && text_[position_] != '\\' &&
               static_cast<unsigned char>(text_[position_]) >= 0x20)
            ++position_;
        std::string_view const plain = text_.substr(begin, position_ - begin);
        if (!is_utf8(plain)) return fail("a string is not UTF-8");
        value += plain;
        if (position_ == text_.size()) return fail("a string does not end");
        char const letter = text_[position_++];
        if (letter == '"') return true;
        if (letter != '\\') return fail("a string has a control character");
        if (!read_escape(value)) return false;
    }
}

std::string_view json_reader_t::read_number_text() noexcept {
    skip_space();
    size_t const begin = position_;
    auto const peek = [&] { return position_ == text_.size() ? '\0' : text_[position_]; };
    auto const digits = [&] {
        size_t const from = position_;
        while (is_digit(peek())) ++position_;
        return position_ != from;
    };
    if (peek() == '-') ++position_;
    bool good = true;
    if (peek() == '0') ++position_;
    else good = digits();
    if (good && peek() == '.') ++position_, good = digits();
    if (good && (peek() == 'e' || peek() == 'E')) {
        ++position_;
        if (peek() == '+' || peek() == '-') ++position_;
        good = digits();
    }
    if (good) return text_.substr(begin, position_ - begin);
    fail("a number is expected");
    return {};
}

bool json_reader_t::read_count(uint64_t &value) noexcept {
    if (error_) return false;
    std::string_view const text = read_number_text();
    if (error_) return false;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range) return fail("a number is too large");
    if (error != std::errc() || end != text.data() + text.size())
        return fail("a whole number that is not negative is expected");
    return true;
}

bool json_reader_t::read_number(double &value) noexcept {
    if (error_) return false;
    std::string_view const text = read_number_text();
    if (error_) return false;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return fail("a number is out of range");
    return true;
}

bool json_reader_t::literal(std::string_view word) noexcept {
    if (text_.substr(position_, word.size()) != word) return fail("a value is expected");
    position_ += word.size();
    return true;
}

bool json_reader_t::skip_value() {
    if (error_) return false;
    skip_space();
    std::string ignored;
    switch (position_ == text_.size() ? '\0' : text_[position_]) {
    case '{':
        // Nesting is bounded by `enter`, and so is this recursion.
        for (enter_object(); next_member(ignored);) skip_value();
        return !error_;
    case '[':
        for (enter_array(); next_element();) skip_value();
        return !error_;
    case '"': return read_string(ignored);
    case 't': return literal("true");
    case 'f': return literal("false");
    case 'n': return literal("null");
    default: read_number_text(); return !error_;
    }
}

bool json_reader_t::finish() noexcept {
    if (error_) return false;
    skip_space();
    return position_ == text_.size() || fail("something follows the end");
}

} // namespace uform
