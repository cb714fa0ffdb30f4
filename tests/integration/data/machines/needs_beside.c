/* Makes the library that it is linked into need the one beside it, at once: without it, opening fails. */
int beside(void);
int (*const needs_beside)(void) = beside;
