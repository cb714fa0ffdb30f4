/* Takes the place of dlopen and dlsym in whatever is compiled with `-include macho_loader.h`. */
#pragma once
#include <dlfcn.h>
void *macho_open(const char *path, int flags);
void *macho_symbol(void *opened, const char *name);
char *macho_error(void);
#ifndef MACHO_LOADER_ITSELF
#define dlopen macho_open
#define dlsym macho_symbol
#define dlerror macho_error
#endif
