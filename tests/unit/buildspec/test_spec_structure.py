"""Unknown keys, missing keys, wrong types and values out of bounds, each in the exact words the user reads."""

from collections.abc import Callable

import pytest

MODEL = """
[[models]]
name = "m"
path = "m.onnx"
"""

BAD = {
    "unknown key at the top": (
        'target = ["linux-x64"]' + MODEL,
        """error: unknown-key
  kws.toml: 'target' is not a known key
  hint: did you mean 'targets'?""",
    ),
    "unknown key in a target": (
        MODEL + '[[targets]]\nid = "linux-x64"\ncompilers = "gcc"',
        """error: unknown-key
  kws.toml: 'targets[0].compilers' is not a known key
  hint: did you mean 'compiler'?""",
    ),
    "unknown key far from all known ones": (
        MODEL + "[onnxruntime]\nzzz = 1",
        """error: unknown-key
  kws.toml: 'onnxruntime.zzz' is not a known key
  hint: the keys here are version, source and path""",
    ),
    "unknown key of an input": (
        MODEL + '[[models.cases]]\nname = "c"\n[models.cases.inputs.sr]\nval = 1',
        """error: unknown-key
  kws.toml: 'models[0].cases[0].inputs.sr.val' is not a known key
  hint: did you mean 'value'?""",
    ),
    "unknown key that TOML must quote": (
        MODEL + '"a b\\u0000" = 1',
        """error: unknown-key
  kws.toml: 'models[0]."a b\\u0000"' is not a known key
  hint: the keys here are name, path, url, wheel, member, sha256, allow_links, style, level, layout, steps, cases, \
tolerances, expect, session and reference""",
    ),
    "unknown element type": (
        MODEL + "[models.tolerances.flaot32]\nabsolute = 1e-3",
        """error: unknown-key
  kws.toml: 'models[0].tolerances.flaot32' is not a known key
  hint: did you mean 'float32'?""",
    ),
    "unknown key with a date": (
        "released = 2020-01-01" + MODEL,
        """error: unknown-key
  kws.toml: 'released' is not a known key
  hint: the keys here are name, onnxruntime, profile, build_options, exceptions, linkage, packages, android, apple, \
budgets, session, models and targets""",
    ),
    "keys by which they went before": (
        'levers = { hot = "-O3" }\n[build_options]\nfolding = true\nunused_types = false' + MODEL,
        """error: unknown-key
  kws.toml: 'levers' is not a known key
  hint: it is called 'build_options' now
error: unknown-key
  kws.toml: 'build_options.folding' is not a known key
  hint: it is called 'icf' now
error: unknown-key
  kws.toml: 'build_options.unused_types' is not a known key
  hint: write 'type_reduction', which is true where this was false""",
    ),
    "no models": (
        'name = "kws"',
        """error: missing-key
  kws.toml: 'models' is missing""",
    ),
    "model without a name": (
        '[[models]]\npath = "m.onnx"',
        """error: missing-key
  kws.toml: 'models[0].name' is missing""",
    ),
    "target without an identifier": (
        MODEL + '[[targets]]\nglibc = "2.28"',
        """error: missing-key
  kws.toml: 'targets[0].id' is missing""",
    ),
    "empty list of models": (
        "models = []",
        """error: bad-value
  kws.toml: 'models' is empty
  hint: add a [[models]] table""",
    ),
    "one model as a table": (
        '[models]\nname = "m"\npath = "m.onnx"',
        """error: wrong-type
  kws.toml: 'models' must be an array, not a table
  hint: each one begins with [[models]]""",
    ),
    "targets as strings": (
        'targets = ["linux-x64"]' + MODEL,
        """error: wrong-type
  kws.toml: 'targets[0]' must be a table, not a string""",
    ),
    "number for a path": (
        '[[models]]\nname = "m"\npath = 3',
        """error: wrong-type
  kws.toml: 'models[0].path' must be a string, not an integer""",
    ),
    "word for a switch": (
        'exceptions = "yes"' + MODEL,
        """error: wrong-type
  kws.toml: 'exceptions' must be true or false, not a string""",
    ),
    "fraction for a seed": (
        MODEL + '[[models.cases]]\nname = "c"\nseed = 1.0',
        """error: wrong-type
  kws.toml: 'models[0].cases[0].seed' must be an integer, not a number""",
    ),
    "number for a version": (
        "onnxruntime.version = 1.21" + MODEL,
        """error: wrong-type
  kws.toml: 'onnxruntime.version' must be a string, not a number""",
    ),
    "version for the runtime": (
        'onnxruntime = "1.21.0"' + MODEL,
        """error: wrong-type
  kws.toml: 'onnxruntime' must be a table, not a string""",
    ),
    "array for a value": (
        MODEL + '[[models.cases]]\nname = "c"\ninputs = { sr = { value = [16000] } }',
        """error: wrong-type
  kws.toml: 'models[0].cases[0].inputs.sr.value' must be true or false, an integer, a number or a string, \
not an array""",
    ),
    "table for a value": (
        MODEL + '[[models.cases]]\nname = "c"\ninputs = { sr = { value = { bool = 1 } } }',
        """error: wrong-type
  kws.toml: 'models[0].cases[0].inputs.sr.value' must be true or false, an integer, a number or a string, \
not a table""",
    ),
    "number for a style": (
        MODEL + "style = 1",
        """error: wrong-type
  kws.toml: 'models[0].style' must be 'fixed' or 'runtime', not 1""",
    ),
    "date for a version": (
        "onnxruntime.version = 2025-03-08" + MODEL,
        """error: wrong-type
  kws.toml: 'onnxruntime.version' is a date or time, which is not a type of any key""",
    ),
    "time among models": (
        "models = [07:32:00]",
        """error: wrong-type
  kws.toml: 'models[0]' is a date or time, which is not a type of any key""",
    ),
    "not a number": (
        "budgets.load_ms = nan" + MODEL,
        """error: bad-value
  kws.toml: 'budgets.load_ms' must be a finite number, not nan""",
    ),
    "infinity": (
        MODEL + '[[models.cases]]\nname = "c"\ninputs = { x = { low = -inf } }',
        """error: bad-value
  kws.toml: 'models[0].cases[0].inputs.x.low' must be a finite number, not -inf""",
    ),
    "integer of 65 bits": (
        MODEL + '[[models.cases]]\nname = "c"\nseed = 0x1_0000_0000_0000_0000',
        """error: bad-value
  kws.toml: 'models[0].cases[0].seed' does not fit into the 64 bits of a TOML integer""",
    ),
    "budget of nothing": (
        "budgets.library_bytes = 0" + MODEL,
        """error: bad-value
  kws.toml: 'budgets.library_bytes' must be greater than 0, not 0""",
    ),
    "negative dimension": (
        MODEL + '[[models.cases]]\nname = "c"\ndimensions = { "p2o.Dimension.0" = -1 }',
        """error: bad-value
  kws.toml: 'models[0].cases[0].dimensions."p2o.Dimension.0"' must be at least 0, not -1""",
    ),
    "dimension beyond all tensors": (
        MODEL + '[[models.cases]]\nname = "c"\ninputs = { x = { shape = [1, 2147483648] } }',
        """error: bad-value
  kws.toml: 'models[0].cases[0].inputs.x.shape[1]' must be at most 2147483647, not 2147483648""",
    ),
    "cosine above one": (
        MODEL + "[models.tolerances.float32]\ncosine = 1.5",
        """error: bad-value
  kws.toml: 'models[0].tolerances.float32.cosine' must be at most 1, not 1.5""",
    ),
    "digest of the wrong length": (
        MODEL + 'sha256 = "ABC"',
        """error: bad-value
  kws.toml: 'models[0].sha256' must be 64 lower-case hexadecimal digits, not 'ABC'""",
    ),
    "unknown style": (
        MODEL + 'style = "fxed"',
        """error: bad-value
  kws.toml: 'models[0].style' must be 'fixed' or 'runtime', not 'fxed'
  hint: did you mean 'fixed'?""",
    ),
    "version with a letter": (
        'onnxruntime.version = "1.21.0rc1"' + MODEL,
        """error: bad-value
  kws.toml: 'onnxruntime.version' must be a version such as 1.30.0 or 1.30, or 'newest', not '1.21.0rc1'""",
    ),
    "version in other digits": (
        'onnxruntime.version = "१.२.३"' + MODEL,
        """error: bad-value
  kws.toml: 'onnxruntime.version' must be a version such as 1.30.0 or 1.30, or 'newest', not '१.२.३'""",
    ),
    "name with a slash": (
        'name = "../kws"' + MODEL,
        """error: bad-value
  kws.toml: 'name' must be 1 to 64 lower-case letters, digits, '.', '_' or '-', beginning with a letter or a digit, \
not '../kws'""",
    ),
    "option in the place of a wheel": (
        f'[[models]]\nname = "m"\nwheel = "--index-url==x"\nmember = "m.onnx"\nsha256 = "{"0" * 64}"',
        """error: bad-value
  kws.toml: 'models[0].wheel' must be a package and its exact version, such as silero-vad==6.2.3, \
not '--index-url==x'""",
    ),
    "glibc without its major number": (
        MODEL + '[[targets]]\nid = "linux-x64"\nglibc = "28"',
        """error: bad-value
  kws.toml: 'targets[0].glibc' must be a glibc version, such as 2.17, not '28'""",
    ),
    "endless value": (
        f'profile = "{"x" * 5000}"' + MODEL,
        f"""error: bad-value
  kws.toml: 'profile' must be 'balanced', 'size', 'speed' or 'upstream', not '{"x" * 71}...""",
    ),
    "bottomless table": (
        MODEL + ".".join("abcdefgh" * 9) + " = 1",
        """error: unknown-key
  kws.toml: 'models[0].a' is not a known key
  hint: the keys here are name, path, url, wheel, member, sha256, allow_links, style, level, layout, steps, cases, \
tolerances, expect, session and reference""",
    ),
    "bottomless array": (
        MODEL + "cases = " + "[" * 60 + "]" * 60,
        """error: wrong-type
  kws.toml: 'models[0].cases[0]' must be a table, not an array
error: bad-value
  kws.toml: 'models[0].cases[0][0][0][0][0]' is nested too deeply""",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), BAD.values(), ids=BAD)
def test_a_bad_structure_is_refused_in_exact_words(refused: Callable[[str], str], text: str, words: str) -> None:
    assert refused(text) == words
