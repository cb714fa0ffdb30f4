/* Takes the place of dlopen and dlsym in whatever is compiled with `-include loader.h`. */
#pragma once
#include <dlfcn.h>
void *macho_open(const char *path, int flags);
void *macho_symbol(void *opened, const char *name);
char *macho_error(void);
/* Ends a program whose library uses what is not found; the runner's own codes are lower. */
enum { EXIT_NOT_FOUND = 97 };
#ifndef MACHO_LOADER_ITSELF
#define dlopen macho_open
#define dlsym macho_symbol
#define dlerror macho_error
#endif
