"""The transformer of the buildspec: the committed file is what the script makes, and it is a transformer."""

import hashlib
import tomllib
from pathlib import Path

import numpy as np
import onnx
import pytest
from transformer_model import DEFAULT_FILE, HIDDEN, encoder, main

SPEC = DEFAULT_FILE.parents[1] / "transformer.toml"


def test_the_committed_model_is_what_the_script_makes(tmp_path: Path) -> None:
    """Byte by byte, so that nobody has to trust a binary."""
    main([str(tmp_path / "new" / "encoder.onnx")])
    assert (tmp_path / "new" / "encoder.onnx").read_bytes() == DEFAULT_FILE.read_bytes()


def test_the_buildspec_names_the_model_and_its_digest() -> None:
    """A changed model is a changed spec."""
    (model,) = tomllib.loads(SPEC.read_text())["models"]
    assert SPEC.parent / model["path"] == DEFAULT_FILE
    assert model["sha256"] == hashlib.sha256(DEFAULT_FILE.read_bytes()).hexdigest()


def test_the_model_has_a_transformers_operators() -> None:
    """Those that the issue names, in plain ONNX."""
    names = {node.op_type for node in encoder().graph.node}
    assert {"LayerNormalization", "Softmax", "MatMul", "Erf", "Gather"} <= names
    assert {node.domain for node in encoder().graph.node} == {""}


def test_the_model_is_small_and_compresses_well() -> None:
    """It travels in git and in the wheel."""
    assert DEFAULT_FILE.stat().st_size < 600_000


def answer(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the embeddings as ONNX's own, slow definition of the operators gives them."""
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415 - takes half a second to load

    (embedding,) = ReferenceEvaluator(encoder()).run(None, {"input_ids": ids, "attention_mask": mask})
    return np.asarray(embedding)


def test_embeddings_depend_on_the_tokens_within_the_mask_alone() -> None:
    """That is what the mask is for; and they have length 1."""
    ids = np.array([[3, 141, 592, 65], [3, 141, 7, 9], [3, 142, 592, 65]])
    found = answer(ids, np.array([[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]]))
    assert found.shape == (3, HIDDEN)
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(3), abs=1e-5)
    assert found[0] == pytest.approx(found[1], abs=1e-5)
    assert np.abs(found[0] - found[2]).max() > 0.01


def test_the_order_of_tokens_matters() -> None:
    """Positions are embedded."""
    full = np.ones((1, 2), dtype=np.int64)
    assert np.abs(answer(np.array([[3, 5]]), full) - answer(np.array([[5, 3]]), full)).max() > 0.01


def test_the_model_is_valid() -> None:
    """With all shapes inferred."""
    onnx.checker.check_model(encoder(), full_check=True)
