// SPDX-License-Identifier: Apache-2.0
// Compares a format's fields with a recording: each alone in its bits and in no others, all of them together as bytes,
// and read back from bytes that somebody else made.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "golden_cxi.hpp"
#include "strait/wire/cxi_bits.hpp"

namespace cxi_fields {

template <class T>
struct Field {
  const char* name;
  void (*set)(T&, std::uint64_t);
  std::uint64_t (*get)(const T&);
};

template <class Owner, class Value>
Value argument_of(void (Owner::*)(Value));

// g++ 12 looks for a table of virtual functions in a call through a member pointer, and warns that there is none.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-aliasing"
// A getter and a setter.
template <class T, auto Get, auto Set>
Field<T> accessor(const char* name) {
  using Value = decltype(argument_of(Set));
  return {name, [](T& t, std::uint64_t v) { (t.*Set)(static_cast<Value>(v)); },
          [](const T& t) { return static_cast<std::uint64_t>((t.*Get)()); }};
}
#pragma GCC diagnostic pop

// The first byte of a command, which has a setter of another shape.
template <class T>
Field<T> header() {
  return {"header", [](T& t, std::uint64_t v) { strait::wire::cxi::put_bits<0, 8>(t.words, v); },
          [](const T& t) { return std::uint64_t{t.header()}; }};
}

template <auto Step, auto... Rest, class T>
constexpr auto& walk(T& t) {
  if constexpr (std::is_member_pointer_v<decltype(Step)>) {
    if constexpr (sizeof...(Rest) == 0)
      return t.*Step;
    else
      return walk<Rest...>(t.*Step);
  } else {
    if constexpr (sizeof...(Rest) == 0)
      return t[Step];
    else
      return walk<Rest...>(t[Step]);
  }
}

template <class V>
std::uint64_t as_number(V v) {
  if constexpr (std::is_enum_v<V>)
    return static_cast<std::uint64_t>(v);
  else
    return static_cast<std::make_unsigned_t<V>>(v);
}

// A member, or a member of a member: the steps are member pointers and indices.
template <class T, auto... Steps>
Field<T> member(const char* name) {
  return {name,
          [](T& t, std::uint64_t v) {
            auto& place = walk<Steps...>(t);
            place = static_cast<std::remove_reference_t<decltype(place)>>(v);
          },
          [](const T& t) { return as_number(walk<Steps...>(t)); }};
}

using Bytes = std::vector<unsigned char>;

inline Bytes bytes_of_hex(const std::string& hex) {
  Bytes out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<unsigned char>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  return out;
}

template <class T>
Bytes bytes_in(const T& t) {
  Bytes out(sizeof t);
  std::memcpy(out.data(), &t, sizeof t);
  return out;
}

inline Bytes only_these_bits(std::size_t size, unsigned bit, unsigned width) {
  Bytes out(size);
  for (unsigned i = bit; i < bit + width; ++i) out[i / 8] = static_cast<unsigned char>(out[i / 8] | 1u << i % 8);
  return out;
}

struct Comparison {
  const std::vector<golden_cxi::Format>& recorded;
  std::size_t done = 0;

  template <class T>
  void check(const std::string& name, const std::vector<Field<T>>& fields) {
    SCOPED_TRACE(name);
    ++done;
    const golden_cxi::Format* format = nullptr;
    for (const golden_cxi::Format& f : recorded)
      if (f.name == name) format = &f;
    ASSERT_NE(format, nullptr) << "not recorded";
    const Bytes golden = bytes_of_hex(format->hex);
    ASSERT_EQ(sizeof(T), golden.size());
    ASSERT_EQ(fields.size(), format->fields.size());
    T together{}, theirs;
    std::memcpy(&theirs, golden.data(), sizeof theirs);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const Field<T>& ours = fields[i];
      const golden_cxi::Field& field = format->fields[i];
      ASSERT_STREQ(ours.name, field.name);
      SCOPED_TRACE(ours.name);
      const std::uint64_t ones = ~std::uint64_t{0} >> (64 - field.width);
      const Bytes place = only_these_bits(sizeof(T), field.bit, field.width);
      T alone{};
      ours.set(alone, ones);
      EXPECT_EQ(bytes_in(alone), place);
      EXPECT_EQ(ours.get(alone), ones);
      ours.set(alone, 0);
      EXPECT_EQ(bytes_in(alone), Bytes(sizeof(T)));
      EXPECT_EQ(ours.get(theirs), field.value);
      ours.set(together, field.value);
    }
    EXPECT_EQ(bytes_in(together), golden);
  }
};

}  // namespace cxi_fields
