/* Division of 128-bit numbers, for the C++ library's clocks of files and abseil's durations. zig's own comes in one object
 * with its memcpy, a loop over bytes, which would then be taken in place of the C library's: half of the time to load a
 * model goes with it, and an eighth of an inference. */

typedef __int128 wide;
typedef unsigned __int128 unsigned_wide;

wide __divti3(wide dividend, wide divisor);
wide __modti3(wide dividend, wide divisor);
unsigned_wide __udivti3(unsigned_wide dividend, unsigned_wide divisor);
unsigned_wide __umodti3(unsigned_wide dividend, unsigned_wide divisor);

static unsigned_wide magnitude(wide number) { return number < 0 ? -(unsigned_wide)number : (unsigned_wide)number; }

static unsigned_wide divide(unsigned_wide left, unsigned_wide by, unsigned_wide *rest) {
  unsigned_wide quotient = 0;
  *rest = 0;
  for (int bit = 127; bit >= 0; bit--) {
    unsigned_wide carried = *rest >> 127;
    *rest = *rest << 1 | (left >> bit & 1);
    if (carried || *rest >= by) {
      *rest -= by;
      quotient |= (unsigned_wide)1 << bit;
    }
  }
  return quotient;
}

unsigned_wide __udivti3(unsigned_wide dividend, unsigned_wide divisor) {
  unsigned_wide rest;
  return divide(dividend, divisor, &rest);
}

unsigned_wide __umodti3(unsigned_wide dividend, unsigned_wide divisor) {
  unsigned_wide rest;
  divide(dividend, divisor, &rest);
  return rest;
}

wide __divti3(wide dividend, wide divisor) {
  unsigned_wide rest, quotient = divide(magnitude(dividend), magnitude(divisor), &rest);
  return (wide)((dividend < 0) != (divisor < 0) ? -quotient : quotient);
}

wide __modti3(wide dividend, wide divisor) {
  unsigned_wide rest;
  divide(magnitude(dividend), magnitude(divisor), &rest);
  return (wide)(dividend < 0 ? -rest : rest);
}
