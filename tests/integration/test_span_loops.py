"""Loops over spans by pointers, that stand before the C++ library's own, with the real compilers."""

import ctypes
from typing import Final

import numpy as np
import pytest

from cxx_compilers import COMPILERS, compile_with

pytestmark = pytest.mark.network

SPAN: Final = """\
#pragma once
#include <cstddef>
#include <iterator>
#include <type_traits>
extern "C" { inline int refused = 0; inline int steps = 0; }
namespace gsl { namespace details {
template <class T> struct span_iterator {
  using iterator_category = std::random_access_iterator_tag;
  using value_type = std::remove_cv_t<T>;
  using difference_type = std::ptrdiff_t;
  using pointer = T*;
  using reference = T&;
  T *begin_, *end_, *current_;
  T& operator*() const { if (current_ < begin_ || current_ >= end_) ++refused; return *current_; }
  span_iterator& operator++() { if (current_ >= end_) ++refused; ++steps; ++current_; return *this; }
  span_iterator operator+(std::ptrdiff_t n) const {
    if (n > end_ - current_) ++refused;
    return {begin_, end_, current_ + n};
  }
  std::ptrdiff_t operator-(span_iterator other) const { return current_ - other.current_; }
  bool operator==(span_iterator other) const { return current_ == other.current_; }
  bool operator!=(span_iterator other) const { return current_ != other.current_; }
};
} }
"""
SOURCE: Final = """\
#include <algorithm>
#include <gsl/span>
template <class T> gsl::details::span_iterator<T> at(T* data, long count) { return {data, data + count, data}; }
extern "C" long squares(const float* from, float* to, long count, long room) {
  auto first = at(from, count);
  auto out = at(to, room);
  return std::transform(first, first + count, out, [](float x) { return x * x; }) - out;
}
extern "C" long products(const float* one, const int64_t* other, float* to, long count, long others, long room) {
  auto first = at(one, count);
  auto out = at(to, room);
  auto product = [](float x, int64_t y) { return static_cast<float>(x * static_cast<float>(y)); };
  return std::transform(first, first + count, at(other, others), out, product) - out;
}
extern "C" int how_many_refused() { int all = refused; refused = 0; return all; }
extern "C" int how_many_steps() { int all = steps; steps = 0; return all; }
"""
LENGTHS: Final = (1, 2, 3, 4, 15, 16, 17, 255, 1500)


@pytest.fixture(scope="module", params=COMPILERS)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Return the functions of `SOURCE`, compiled as `element_wise_ops.cc` is."""
    folder = tmp_path_factory.mktemp("span-loops")
    source, span = folder / "loops.cc", folder / "gsl" / "span"
    span.parent.mkdir()
    span.write_text(SPAN)
    source.write_text("#include <cstdint>\n" + SOURCE)
    options = ("-std=c++17", "-O2", "-fPIC", "-shared")
    return ctypes.CDLL(str(compile_with(request.param, "span_loops.h", source, folder / "loops.so", *options)))


def pointer(data: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(data.ctypes.data)


def long(number: int) -> ctypes.c_long:
    return ctypes.c_long(number)


@pytest.mark.parametrize("length", LENGTHS)
def test_each_element_is_made_without_a_step_of_an_iterator(library: ctypes.CDLL, length: int) -> None:
    """Of one range or two, and the end of what was written is returned."""
    generator = np.random.default_rng(length)
    one = generator.standard_normal(length, dtype=np.float32)
    other = generator.integers(-9, 9, length)
    made = np.zeros(length + 1, np.float32)
    assert library.squares(pointer(one), pointer(made), long(length), long(length)) == length
    assert made.tolist() == [*(one * one).tolist(), 0]
    words = (pointer(one), pointer(other), pointer(made))
    assert library.products(*words, long(length), long(length), long(length)) == length
    assert made.tolist() == [*(one * other.astype(np.float32)).tolist(), 0]
    assert (library.how_many_refused(), library.how_many_steps()) == (0, 0)


def test_of_no_elements_nothing_is_made(library: ctypes.CDLL) -> None:
    """Nor is anything asked for that is not there."""
    assert library.squares(None, None, long(0), long(0)) == 0
    assert library.products(None, None, None, long(0), long(0), long(0)) == 0
    assert library.how_many_refused() == 0


def test_a_range_that_is_too_short_is_refused(library: ctypes.CDLL) -> None:
    """As a checked iterator refuses it: what is written to, and what is read beside."""
    one, other, made = np.ones(8, np.float32), np.ones(8, np.int64), np.zeros(8, np.float32)
    library.squares(pointer(one), pointer(made), long(8), long(7))
    assert library.how_many_refused() == 1
    library.products(pointer(one), pointer(other), pointer(made), long(8), long(7), long(8))
    assert library.how_many_refused() == 1
    library.products(pointer(one), pointer(other), pointer(made), long(8), long(8), long(7))
    assert library.how_many_refused() == 1
