"""Kernels that no processor from a baseline upwards chooses, in constructors of upstream's form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.compiling.dead_kernels import BRANCH, FLOORS, superseded_kernels

CONSTRUCTOR = f"""
{{
  this->Gemm = GemmSse;
  this->Pool[Maximum] = PoolMaximumSse;
  this->Pool[Average] = PoolAverageSse;
  this->Exp = &Exp;
  this->Cast = nullptr;
  if (Avx()) {{
    this->Gemm = GemmAvx;
    this->Pool[Maximum] = PoolMaximumAvx;
    // {BRANCH}
    if (Avx2()) {{
      this->Gemm = GemmFma;
      if (Vnni()) {{
        this->Exp = ExpVnni;
        this->Pool[Average] = PoolMaximumSse;
      }}
      this->Cast = CastAvx2;
    }}
  }}
  this->Late = GemmAvx;
}}
"""


@pytest.mark.parametrize("cpu", FLOORS)
def test_what_is_replaced_on_every_processor_is_superseded(cpu: str) -> None:
    """By branches that are always taken; not what may be replaced, and not what is chosen elsewhere again."""
    assert superseded_kernels(CONSTRUCTOR, cpu) == {"GemmSse", "nullptr"}


def test_what_is_replaced_after_the_constructor_is_superseded_as_well() -> None:
    """Also the kernels that its last branch chose, unless they are chosen elsewhere."""
    after = "table.Pool[Average] = PoolAverageWide; table.Gemm = GemmWide; table.BlockSize = 16;"
    superseded = superseded_kernels(CONSTRUCTOR, FLOORS[0], after)
    assert superseded == {"GemmSse", "GemmFma", "PoolAverageSse", "nullptr"}


@pytest.mark.parametrize("cpu", ["", "x86-64-v2", "cortex-a76"])
def test_below_the_baseline_every_kernel_may_be_chosen(cpu: str) -> None:
    """Then all stay."""
    assert superseded_kernels(CONSTRUCTOR, cpu) == frozenset()


def test_another_constructor_keeps_everything() -> None:
    """Another version's may have other words before the branch."""
    assert superseded_kernels(CONSTRUCTOR.replace("AVX2/FMA3", "AVX2"), "x86-64-v3") == frozenset()


@given(st.text(alphabet="this->Gemm=Sse;{}[]&\n ", max_size=80))
def test_any_text_is_read(text: str) -> None:
    """No brace has to be closed."""
    assert superseded_kernels(f"this->A = B; {BRANCH} {text}", "x86-64-v3") >= frozenset()
