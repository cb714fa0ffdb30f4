"""Which C functions are reached from what an app names, over what sources declare. Pure.

By names, and so rather too many: a method that the app names counts for every class of which it can have an object.
"""

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter

from ortrim.analysis.api.declared import OWNED, Declared, Function, words_of


class Closure:
    """What is reached: `calls` has each C function and what first led to it."""

    def __init__(self, declared: Declared, opaque: Iterable[str], words: Iterable[str], classes: Iterable[str]) -> None:
        self.calls: dict[str, str] = {}
        self._bases = declared.bases
        self._words = set(words)
        self._classes = set[str]()
        self._reached = set[Function]()
        self._guarded = declared.named_only.union(opaque)
        key = attrgetter("owner", "name")
        self._overloads = [tuple(each) for _, each in groupby(sorted(declared.functions, key=key), key)]
        self._mention(classes)
        while self._grow(unfit=False) or self._grow(unfit=True):
            pass

    def _mention(self, words: Iterable[str]) -> None:
        """Take up the classes among words, with all that they are made of."""
        for name in sorted(set(words) & self._bases.keys() - self._classes):
            self._classes.add(name)
            for owned in OWNED.findall(self._bases[name]):
                self.calls.setdefault(f"Release{owned}", f"~{name}")
            self._words |= words_of(self._bases[name])
            self._mention(words_of(self._bases[name]))

    def _grow(self, *, unfit: bool) -> bool:
        """Take up what can be called now, and return whether there was more of it.

        Of overloads, those count for whose parameters the app can have objects; `unfit`: all, where none of them does.
        """
        before = len(self._reached)
        for overloads in self._overloads:
            owner, name = overloads[0].owner, overloads[0].name
            if owner in self._bases and owner not in self._classes:  # else it is a namespace's, or nobody's
                continue
            if not (overloads[0].implied or name in self._words):
                continue
            fit = [each for each in overloads if each.parameters & self._guarded <= self._words]
            for each in overloads if unfit and not fit else fit:
                self._reach(each)
        return len(self._reached) > before

    def _reach(self, function: Function) -> None:
        if function in self._reached:
            return
        self._reached.add(function)
        for name in sorted(function.calls):
            self.calls.setdefault(name, "::".join(filter(None, (function.owner, function.name))))
        self._words |= function.words
        self._mention(function.words | function.parameters)
