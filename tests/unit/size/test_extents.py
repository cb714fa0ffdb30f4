from hypothesis import given
from hypothesis import strategies as st

from ortrim.compiling.size.accounting import Piece, divided

PLACES = st.integers(min_value=-50, max_value=150)
CLAIMS = st.lists(
    st.builds(lambda start, size, owner: Piece(start=start, end=start + size, owner=owner), PLACES, PLACES, st.text())
)


@given(CLAIMS, st.integers(min_value=0, max_value=60), st.integers(min_value=0, max_value=60))
def test_every_byte_has_exactly_one_owner(claims: list[Piece[str]], start: int, size: int) -> None:
    """Whatever is claimed, the pieces follow each other without gap or overlap, and none is empty."""
    pieces = list(divided(start, start + size, claims))
    assert sum(piece.size_bytes for piece in pieces) == size
    assert all(piece.size_bytes > 0 for piece in pieces)
    assert [piece.start for piece in pieces] == [start, *(piece.end for piece in pieces)][: len(pieces)]
    for piece in pieces:
        inside = [claim for claim in claims if claim.start <= piece.start and piece.end <= claim.end]
        assert piece.owner in [claim.owner for claim in inside] if piece.owner is not None else True


def test_the_first_claim_has_what_two_claim() -> None:
    """Of overlapping claims the earlier one wins, of those that begin together the longer; the rest is nobody's."""
    claims = [
        Piece(start=4, end=8, owner="late"),
        Piece(start=2, end=6, owner="early"),
        Piece(start=2, end=3, owner="short"),
    ]
    assert [(piece.size_bytes, piece.owner) for piece in divided(0, 10, claims)] == [
        (2, None),
        (4, "early"),
        (2, "late"),
        (2, None),
    ]
