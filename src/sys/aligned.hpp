// SPDX-License-Identifier: Apache-2.0
// Mappings and arrays that huge pages can back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>

#include "base/error.hpp"
#include "sys/mapping.hpp"

namespace strait::sys {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

// Like map_file, from the start of the file, at an address that is a multiple of 2 MiB once the file is that long; asks
// the kernel for huge pages and does not insist.
[[nodiscard]] Result<Mapping> map_file_aligned(int fd, std::size_t length_bytes, Protect protect,
                                               const Calls& calls = real_calls());

// Asks for huge pages and does not insist. Whole huge pages of it only.
void prefer_huge_pages(void* base, std::size_t length_bytes);

// An array, its elements as `T()` makes them; from 2 MiB on where huge pages can back it. Of tables that are read at
// random: with small pages the walk to each takes longer than the cache misses do.
struct LargeArrayDelete {
  std::align_val_t alignment{1};
  template <class T>
  void operator()(T* elements) const {
    static_assert(std::is_trivially_destructible_v<T>);
    ::operator delete(static_cast<void*>(elements), alignment);
  }
};
template <class T>
using LargeArray = std::unique_ptr<T[], LargeArrayDelete>;
template <class T>
[[nodiscard]] LargeArray<T> make_large_array(std::size_t count) {
  const std::size_t bytes = count * sizeof(T);
  const std::align_val_t alignment{bytes < kHugePageBytes ? alignof(T) : kHugePageBytes};
  void* const memory = ::operator new(bytes, alignment);
  if (bytes >= kHugePageBytes) prefer_huge_pages(memory, bytes);
  T* const elements = static_cast<T*>(memory);
  std::uninitialized_value_construct_n(elements, count);  // constructors of such tables do not throw
  return LargeArray<T>(elements, LargeArrayDelete{alignment});
}

}  // namespace strait::sys
