"""Errors: what they carry, how they read, and that they survive pickling."""

from __future__ import annotations

import pickle

import pytest

from pyonednn_q import errors

ARGUMENT_ERRORS = (
    errors.ArgumentError,
    errors.ShapeError,
    errors.LayoutError,
    errors.AliasError,
    errors.DTypeError,
)

REASONS = (("brg_conv_fwd:avx2", "unsupported dtype"), ("ref:any", "bad bias"))

UNSUPPORTED = (
    errors.UnsupportedError("unimplemented", "create", "conv", "why", explain=lambda: REASONS),
    errors.ReferenceKernelError("refused", "select", "conv", explain=lambda: REASONS),
    errors.KnownWrongError("refused", "select", "conv", guards=("a", "b"), explain=lambda: REASONS),
    errors.SaturationError("refused", "check", "conv", channels=(0, 3), explain=lambda: REASONS),
)


@pytest.mark.parametrize("kind", ARGUMENT_ERRORS)
def test_argument_errors_name_what_came_and_what_would_do(kind: type[errors.ArgumentError]) -> None:
    error = kind("wei", "(3,)", "(4,)")
    assert str(error) == "wei: got (3,); wanted (4,)"
    assert (error.argument, error.got, error.wanted) == ("wei", "(3,)", "(4,)")
    assert isinstance(error, ValueError)


def test_classes_are_those_that_python_programs_expect() -> None:
    assert issubclass(errors.DTypeError, TypeError)
    assert issubclass(errors.OneDNNError, RuntimeError)
    assert issubclass(errors.LibraryError, ImportError)
    assert issubclass(errors.ForkedError, RuntimeError)
    public = [value for value in vars(errors).values() if isinstance(value, type)]
    ours = [kind for kind in public if issubclass(kind, Exception)]
    assert issubclass(errors.OutOfMemoryError, MemoryError)
    assert len(ours) == 16
    assert all(issubclass(kind, errors.Error) for kind in ours)


def test_onednn_error_reads_without_its_empty_parts() -> None:
    full = errors.OneDNNError("runtime_error", "dnnl_stream_wait", "matmul 2x2", "out of luck")
    assert str(full) == "dnnl_stream_wait: runtime_error; out of luck; matmul 2x2"
    assert str(errors.OneDNNError("runtime_error", "", "")) == "runtime_error"


def test_reasons_are_asked_for_once_and_only_when_read() -> None:
    asked = []

    def explain() -> errors.Reasons:
        asked.append(1)
        return REASONS

    error = errors.UnsupportedError("unimplemented", "create", "conv", explain=explain)
    assert asked == []
    assert error.reasons == REASONS
    assert "brg_conv_fwd:avx2: unsupported dtype" in str(error)
    assert asked == [1]


def test_a_failing_question_does_not_hide_the_error() -> None:
    def explain() -> errors.Reasons:
        raise OSError

    error = errors.UnsupportedError("unimplemented", "create", "conv", explain=explain)
    assert error.reasons == ()
    assert str(error) == "create: unimplemented; conv"


@pytest.mark.parametrize("error", UNSUPPORTED, ids=lambda error: type(error).__name__)
def test_unsupported_errors_pickle_with_their_reasons(error: errors.UnsupportedError) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        copy = pickle.loads(pickle.dumps(error, protocol))
        assert type(copy) is type(error)
        assert copy.reasons == REASONS
        assert str(copy) == str(error)
        assert {**vars(copy)} == {**vars(error)}


def test_what_to_do_about_weights_that_saturate_is_told_whole() -> None:
    problem = "convolution " + "src:u8:1x2048x224x224@channels_last " * 9
    remedy = "keep weights in [-64, 64] (even ones for s8 sources), or pass saturation='allow'"
    for words in range(1, 150):
        detail = f"{'words ' * words}; {remedy}"
        for explain in (None, lambda: REASONS * 30):
            error = errors.SaturationError(
                "refused", "checking the weights", problem, detail, explain=explain
            )
            assert remedy in str(error)
            assert remedy in error.detail
            assert len(str(error)) <= 500
    short = errors.OneDNNError("refused", "checking", problem, "why")
    assert str(short).startswith("checking: refused; why; convolution src:u8:1x2048")


def test_other_errors_pickle() -> None:
    for error in (
        *(kind("wei", "(3,)", "(4,)") for kind in ARGUMENT_ERRORS),
        errors.OneDNNError("runtime_error", "dnnl_stream_wait", "matmul", "detail"),
        errors.LibraryError("none found", (("wheel onednn", "not installed"),)),
        errors.ForkedError("forked"),
    ):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert str(copy) == str(error)
        assert vars(copy) == vars(error)


def test_library_error_lists_what_was_tried() -> None:
    error = errors.LibraryError("none found", (("system", "no such file"), ("wheel", "absent")))
    assert str(error) == "none found\n  system: no such file\n  wheel: absent"
