"""The numbers of a model's pre-processing, and inputs before it and behind it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ortrim.core.number_steps import FoldInput
from ortrim.steps.stepped import Array, Feeding, Feeds

LARGEST_BYTE: Final = 255


@dataclass(frozen=True, kw_only=True)
class Normalisation:
    """What becomes of an input of `rank` dimensions: `(input * scale - mean) / std`, each one number or one a channel.

    Worked out as `(input + offset) * factor`. `channels` is None when nothing tells how many there are; `dtype` is that
    of the old input.
    """

    scale: float
    mean: Array
    std: Array
    rank: int
    channels: int | None
    dtype: type

    @property
    def factor(self) -> Array:
        """What the input is multiplied by."""
        return np.asarray(self.scale / self.std)

    @property
    def offset(self) -> Array:
        """What is added to the input before."""
        return np.asarray(-self.mean / self.scale)

    @property
    def are_kept(self) -> bool:
        """Whether numbers stay as they are."""
        return bool((self.factor == 1).all() and not self.offset.any())

    def by_channel(self, values: Array) -> Array:
        """Return numbers in a form that fits an input with its channels second."""
        return values.reshape(-1, *[1] * (self.rank - 2))


def feeding_for(name: str, options: FoldInput, numbers: Normalisation) -> Feeding:
    """Return how arrays for the old input become such for the new one; bytes are rounded, and lead back to others."""

    def forward(feeds: Feeds) -> Feeds:
        return {**feeds, name: _new(feeds[name], options, numbers)}

    def back(feeds: Feeds) -> Mapping[str, Array]:
        return {name: _old(feeds[name], options, numbers)}

    return Feeding(forward=forward, back=back if options.uint8 else None)


def _new(old: Array, options: FoldInput, numbers: Normalisation) -> Array:
    factor, offset = numbers.by_channel(numbers.factor), numbers.by_channel(numbers.offset)
    plain = old.astype(np.float64) / factor - offset
    ordered = plain[:, ::-1] if options.swap_channels else plain
    placed = np.moveaxis(ordered, 1, -1) if options.channels_last else ordered
    made = np.clip(np.rint(placed), 0, LARGEST_BYTE).astype(np.uint8) if options.uint8 else placed.astype(numbers.dtype)
    return np.ascontiguousarray(made)


def _old(new: Array, options: FoldInput, numbers: Normalisation) -> Array:
    placed = np.moveaxis(new, -1, 1) if options.channels_last else new
    ordered = placed[:, ::-1] if options.swap_channels else placed
    factor, offset = numbers.by_channel(numbers.factor), numbers.by_channel(numbers.offset)
    return np.ascontiguousarray(((ordered.astype(np.float64) + offset) * factor).astype(numbers.dtype))
