// Collective mathematics on global arrays, for C: each process works on the part that it holds.
#pragma once

#include "outcore/global_array.hpp"

namespace outcore::capi {

/// Sets all elements to one, given as an element of the array's type; null: zero.
void fill(GlobalArray& array, const void* value);
/// Error(EINVAL) if they differ in type, shape or world.
void copy(const GlobalArray& from, GlobalArray& to);
/// Sum of the products of elements, which is the same at all processes; an element of their type.
/// Error(EINVAL) also for integers other than int64, which have no room for a sum.
void dot(const GlobalArray& a, const GlobalArray& b, void* result);

}  // namespace outcore::capi
