
#define CALLED [[gnu::noinline]] __attribute__((visibility("hidden")))
namespace NAME {
CALLED int odd(unsigned n);
CALLED int even(unsigned n) { return n ? odd(n - 1) * 3 + 1 : 5; }
CALLED int odd(unsigned n) { return n ? even(n - 1) * 3 + 1 : 7; }  // all but a constant
CALLED int times(int n) { return n * 4099; }
CALLED int divided(int n) { return n / 4099; }
CALLED int of_times(int n) { return times(n) + 1; }
CALLED int of_divided(int n) { return divided(n) + 1; }
CALLED extern int numbers[9];
int numbers[9] = {NUMBERS};
CALLED int third() { return numbers[3]; }
CALLED int fifth() { return numbers[5]; }
[[gnu::noinline]] static int local(int n) { return times(n) ^ 77; }
CALLED int of_local(int n) { return local(n) - 1; }
struct Table { virtual int number() const { return 3; } };
CALLED const Table *table() { return new Table; }
CALLED extern const int tag = 99;
CALLED int caught(int (*call)(int)) { try { return call(3); } catch (HANDLED thrown) { return (int)thrown; } }
CALLED int like_it(int (*call)(int)) { try { return call(3); } catch (short thrown) { return thrown; } }
}
extern "C" __attribute__((visibility("hidden"))) void NAMED(std::ostringstream &text) {
  using namespace NAME;
  text << even(4) << ' ' << even(5) << ' ' << odd(5) << ' ' << of_times(2) << ' ' << of_divided(9000) << ' ' << third();
  text << ' ' << fifth() << ' ' << of_local(3) << ' ' << table()->number() << ' ' << caught(times) << like_it(divided);
  text << ' ' << tag << ';';
}
extern "C" __attribute__((visibility("hidden"))) const int *TAGGED() { return &NAME::tag; }
