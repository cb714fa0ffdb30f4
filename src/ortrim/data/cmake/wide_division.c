/* Division of 128-bit numbers, for the C++ library's clocks of files. zig's own comes in one object with its memcpy, a loop over
 * bytes, which would then be taken in place of the C library's: half of the time to load a model goes with it. */

typedef __int128 wide;
typedef unsigned __int128 unsigned_wide;

wide __divti3(wide dividend, wide divisor);

static unsigned_wide magnitude(wide number) { return number < 0 ? -(unsigned_wide)number : (unsigned_wide)number; }

wide __divti3(wide dividend, wide divisor) {
  unsigned_wide left = magnitude(dividend), by = magnitude(divisor), quotient = 0, rest = 0;
  for (int bit = 127; bit >= 0; bit--) {
    rest = rest << 1 | (left >> bit & 1);
    if (rest >= by) {
      rest -= by;
      quotient |= (unsigned_wide)1 << bit;
    }
  }
  return (dividend < 0) != (divisor < 0) ? -(wide)quotient : (wide)quotient;
}
