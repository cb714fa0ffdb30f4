from dataclasses import replace

from ortrim.compiling.translation_units import Unit, UnitIndex, Variant, object_owners, shipped_index

VARIANT = Variant(ort_version="1.21.0", target="linux-x64", toolchain="zig", exceptions=False)
NAMES = ("both.cc", "own/same.cc", "resize.cc", "root.cc", "same.cc", "split.cc", "upsample.cc")
NEEDS = ((), (), (0, 3, 6), (4,), (), (0, 1), (3,))
INDEX = UnitIndex(
    variant=VARIANT,
    roots=(3,),
    units=tuple(
        Unit(path=f"${{sources}}/{name}", provides=(), needs=needs) for name, needs in zip(NAMES, NEEDS, strict=True)
    ),
    kernels=(("ai.onnx:Resize", (2,)), ("ai.onnx:Split", (5,))),
)


def test_a_file_is_owned_by_who_leads_to_it() -> None:
    """Helpers of one operator are its own, those of two are both's, and what every library has is nobody's."""
    owners = object_owners(INDEX, {"ai.onnx:Resize", "ai.onnx:Split", "ai.onnx:Unheard"})
    assert owners == {
        "both.cc.o": {"ai.onnx:Resize", "ai.onnx:Split"},
        "resize.cc.o": {"ai.onnx:Resize"},
        "split.cc.o": {"ai.onnx:Split"},
        "upsample.cc.o": {"ai.onnx:Resize"},
    }


def test_only_operators_that_are_there_count() -> None:
    """A helper of two operators belongs to the one that the library has."""
    assert object_owners(INDEX, {"ai.onnx:Split"})["both.cc.o"] == {"ai.onnx:Split"}
    assert object_owners(INDEX, ()) == {}


def test_a_circle_of_needs_ends() -> None:
    """Units that need each other are owned together."""
    upsample = replace(INDEX.units[6], needs=(2,))
    owners = object_owners(replace(INDEX, units=(*INDEX.units[:6], upsample)), {"ai.onnx:Resize"})
    assert owners["upsample.cc.o"] == owners["resize.cc.o"] == {"ai.onnx:Resize"}


def test_the_shipped_index_tells_real_helpers() -> None:
    """Resize brings upsample.cc, and LSTM its own file and helpers; the runtime's own files are nobody's."""
    index = shipped_index(VARIANT)
    assert index is not None
    owners = object_owners(index, {"ai.onnx:Resize", "ai.onnx:LSTM", "ai.onnx:Conv"})
    assert owners["upsample.cc.o"] == {"ai.onnx:Resize"}
    assert owners["uni_directional_lstm.cc.o"] == {"ai.onnx:LSTM"}
    assert owners["convolve.cpp.o"] == {"ai.onnx:Conv"}
    assert "inference_session.cc.o" not in owners
