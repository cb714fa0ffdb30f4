// What libc++'s larger sources begin with.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <locale>
#include <memory>
