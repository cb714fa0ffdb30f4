static const char* volatile file = __FILE__;

int parent(int value);
int generated(int value);
extern "C" int plain(int value);

int log_value(int value) { return parent(generated(plain(value))) + (file == nullptr); }
