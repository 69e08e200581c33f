"""The verb ``privatize``: turn values into randomized reports, with secure randomness and on all cores.

Values are divided into chunks, and each chunk has separate random streams (docs/words-to-decisions.md). The number of
threads therefore does not change the reports. The compiled kernel returns the same bytes as the scalar sampler. The
scalar sampler handles small batches, and mechanisms without a kernel.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Progress, ProgressCallback, checked_type, core_count
from sfumato.domain import Label
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms import BitDraws, Mechanism, reports_to_column
from sfumato.randomness import AUXILIARY, MAIN, SecureStream, Stream, WordReader, first_block, keystream, secure

if TYPE_CHECKING:
    from sfumato.mechanisms import Kernel

__all__ = ["privatize", "privatize_indices"]

#: Maximum number of decisions for the scalar sampler; it finishes fewer of them before numba is imported.
_SMALL_BATCH_DECISIONS = 20_000
#: Seconds between two calls of a progress function.
_PROGRESS_INTERVAL = 0.1


def privatize(
    mechanism: Mechanism,
    values: Any,
    stream: Stream | None = None,
    *,
    out: npt.NDArray[Any] | None = None,
    threads: int | None = None,
    progress: ProgressCallback | None = None,
    missing: Label | Mapping[str, Label] | None = None,
) -> Any:
    """Randomize values: draw one report per value, in the same order.

    Parameters
    ----------
    mechanism
        The mechanism that draws the reports.
    values
        Values of the domain: a list, or a column of numpy, pandas, polars or Arrow. If the domain is a product or a
        grid, ``values`` may also be a table with one column per part. The function checks all values before it draws
        the first report.
    stream
        Source of random words for simulations and tests: an :class:`InsecureSeeded`. The default is the secure
        randomness of the operating system.
    out
        Array that receives the reports, with the type and shape that the function would return for a list. The default
        is a new array.
    threads
        The number of threads. The default is one per core.
    progress
        A function that is called about ten times per second with a :class:`Progress`. The default is none.
    missing
        Label of the domain that stands for missing values (None, NaN, NA, null). In a product it applies to the
        attributes that have this label. A mapping such as ``{"job": "none", "age": 0}`` has one label per attribute.
        The default rejects missing values, unless the domain has a value for them.

    Returns
    -------
    array or column
        The reports. The type depends on ``values``:

        - list or numpy array: an array of unsigned integers (indices of outputs), or of one row of bytes per report;
        - pandas Series or DataFrame: a Series named "report" with the same index, and the hash of the mechanism in its
          ``attrs``;
        - polars: a Series;
        - Arrow: an array.

        A column has one element per report: an unsigned integer, or a string of ``x`` and hexadecimal digits. If
        ``out`` is not None, the result is ``out``.

    Raises
    ------
    InvalidInput
        If a value is not in the domain, or missing without a label for it. The message names its row.

    Notes
    -----
    With a memoized mechanism, every call draws new permanent answers and does not keep them, which is right for a
    single wave and for simulations. A second call about the same people releases further permanent answers, which no
    ledger counts. A device that answers again calls :meth:`Ledger.answer_wave`.

    Examples
    --------
    >>> import sfumato as sf
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), epsilon=1)
    >>> sf.privatize(mechanism, ["no", "yes", "no"], sf.InsecureSeeded(1))
    array([0, 1, 0], dtype=uint32)
    """
    checked_type("privatize", "the mechanism", mechanism, Mechanism)
    if isinstance(values, (str, bytes)):  # the message names only the type, because the value may be personal
        raise InvalidInput("privatize", "values", "be a list or a column of values ([value] for one)", type(values))
    if stream is not None and (isinstance(stream, type) or not hasattr(stream, "reserve")):
        hint = "Leave stream out for secure randomness."
        raise InvalidInput("privatize", "stream", "be InsecureSeeded(seed), for simulations only", stream, hint=hint)
    indices = mechanism.domain.encode(values, copy=False, missing=missing)
    reports = privatize_indices(mechanism, indices, stream, out=out, threads=threads, progress=progress)
    return reports if out is not None else reports_to_column(reports, values, mechanism.hash)


def privatize_indices(
    mechanism: Mechanism,
    indices: npt.NDArray[np.int64],
    stream: Stream | None = None,
    *,
    out: npt.NDArray[Any] | None = None,
    threads: int | None = None,
    progress: ProgressCallback | None = None,
) -> npt.NDArray[Any]:
    """Randomize values that are already encoded as indices of the domain; see ``privatize``."""
    reports = _checked_out(mechanism, len(indices), out)
    if out is not None and np.may_share_memory(indices, out):
        indices = indices.copy()  # a kernel reads values again after it has written reports of others
    kernel = _kernel(mechanism, len(indices))
    if kernel is None and (stream is None or isinstance(stream, SecureStream)):
        _sample_securely(mechanism, indices, reports, progress)
        return reports
    per_chunk = mechanism.layout.chunk_values
    chunks = -(-len(indices) // per_chunk)
    key, first = (stream or SecureStream()).reserve(chunks)
    pieces = [slice(i * per_chunk, (i + 1) * per_chunk) for i in range(chunks)]
    tracker = _Tracker(len(indices), progress)
    if kernel is None:
        for chunk, piece in enumerate(pieces, first):
            _sample_chunk(mechanism, indices[piece], reports[piece], key, chunk)
            tracker.add(len(reports[piece]))
    else:
        work = iter(enumerate(pieces, first))
        workers = [_Worker(kernel, indices, reports, key, tracker) for _ in range(_thread_count(threads, chunks))]
        if len(workers) <= 1:
            for worker in workers:
                worker.run(work)
        else:
            shared = _Shared(work)
            with ThreadPoolExecutor(len(workers) - 1) as pool:  # starting a thread takes as long as some chunks
                others = [pool.submit(worker.run, shared) for worker in workers[1:]]
                workers[0].run(shared)
                for other in others:
                    other.result()
    tracker.finish()
    return reports


def _checked_out(mechanism: Mechanism, count: int, out: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    """Return the array that receives the reports."""
    shape, dtype = (count, *mechanism.report_format.shape), mechanism.report_format.dtype
    if out is None:
        return np.empty(shape, dtype)
    if out.shape != shape or out.dtype != dtype or not out.flags.c_contiguous or not out.flags.writeable:
        got = Description(f"an array of {out.dtype} with shape {out.shape}")
        raise InvalidInput("privatize", "out", f"be a writable contiguous {dtype} array of shape {shape}", got)
    return out


def _thread_count(threads: int | None, chunks: int) -> int:
    """Return the number of threads to use."""
    if threads is None:
        threads = core_count()
    if threads < 1:
        raise InvalidInput("privatize", "threads", "be at least 1", threads)
    return min(threads, chunks)


def _kernel(mechanism: Mechanism, count: int) -> Kernel | None:
    """Return the compiled kernel, or None if the batch is small or the mechanism has none."""
    if count * (len(mechanism.layout) + 1) <= _SMALL_BATCH_DECISIONS:
        return None
    from sfumato.mechanisms import kernel_for

    return kernel_for(mechanism)


# -- one value at a time -----------------------------------------------------------------------------------


def _store(mechanism: Mechanism, reports: npt.NDArray[Any], i: int, report: int) -> None:
    """Write one report of the scalar sampler to the array."""
    reports[i] = (
        report if not mechanism.report_format.shape else np.frombuffer(mechanism.report_format.encode(report), np.uint8)
    )


def _sample_securely(
    mechanism: Mechanism, indices: npt.NDArray[np.int64], reports: npt.NDArray[Any], progress: ProgressCallback | None
) -> None:
    """Run the scalar sampler on all values with secure bits."""
    tracker = _Tracker(len(indices), progress)
    for i, x in enumerate(indices.tolist()):
        frame = secure.bits(mechanism.layout.frame_bits)
        _store(mechanism, reports, i, mechanism.sample(x, BitDraws(secure.bits, mechanism.layout_of(x), frame)))
        tracker.add(1)
    tracker.finish()


def _sample_chunk(
    mechanism: Mechanism, indices: npt.NDArray[np.int64], reports: npt.NDArray[Any], key: bytes, chunk: int
) -> None:
    """Run the scalar sampler on one chunk with the words of a stream."""
    main, auxiliary = WordReader(key, chunk, MAIN), WordReader(key, chunk, AUXILIARY)
    for i, x in enumerate(indices.tolist()):
        frame = main.number(mechanism.layout.frame_bits)
        _store(mechanism, reports, i, mechanism.sample(x, BitDraws(auxiliary.word, mechanism.layout_of(x), frame)))


# -- chunk by chunk ----------------------------------------------------------------------------------------


class _Shared:
    """An iterator that several threads may share."""

    def __init__(self, inner: Iterator[tuple[int, slice]]) -> None:
        self._inner = inner
        self._lock = threading.Lock()

    def __iter__(self) -> _Shared:
        return self

    def __next__(self) -> tuple[int, slice]:
        with self._lock:
            return next(self._inner)


class _Worker:
    """The buffers of one thread: the keystreams of its current chunk."""

    def __init__(
        self, kernel: Kernel, indices: npt.NDArray[np.int64], reports: npt.NDArray[Any], key: bytes, tracker: _Tracker
    ) -> None:
        # Do everything that chunks share here, because other threads wait while one thread runs Python code.
        self._indices, self._reports = kernel.checked(indices, reports)
        self._run = kernel.run_checked
        self._auxiliary_words = functools.cache(kernel.auxiliary_words)
        self._frame_words = kernel.frame_bytes // kernel.word.itemsize
        self._main, self._auxiliary = _Buffer(key, kernel.word), _Buffer(key, np.dtype(np.uint64))
        self._tracker = tracker

    def run(self, work: Iterator[tuple[int, slice]]) -> None:
        """Randomize chunks until none is left."""
        for chunk, piece in work:
            values, reports = self._indices[piece], self._reports[piece]
            main = self._main.fill(chunk, MAIN, len(values) * self._frame_words)
            words = self._auxiliary_words(len(values))
            while self._run(values, main, self._auxiliary.fill(chunk, AUXILIARY, words), reports) < 0:
                words *= 2
            self._tracker.add(len(values))


class _Buffer:
    """A reused array with the beginning of a keystream; allocating new memory would cost a third of the speed."""

    def __init__(self, key: bytes, word: np.dtype[Any]) -> None:
        self._word = word
        self._words = np.empty(0, word)
        self._zeros = self._room = memoryview(b"")
        self._cipher: Any = keystream(key, 0, MAIN)

    def fill(self, chunk: int, stream: int, count: int) -> npt.NDArray[Any]:
        """Return the first ``count`` words of a stream of a chunk."""
        if len(self._words) != count:
            size = count * self._word.itemsize
            if len(self._room) < size + 16:  # the cipher needs one more block of space
                self._room = np.empty(size + 16, np.uint8).data
            self._zeros = memoryview(bytes(size))
            self._words = np.frombuffer(self._room, self._word, count)
        self._cipher.reset_nonce(first_block(chunk, stream))  # far cheaper than a new cipher for every chunk
        self._cipher.update_into(self._zeros, self._room)
        return self._words


class _Tracker:
    """Count finished values, and report progress at most ten times per second."""

    def __init__(self, total: int, progress: ProgressCallback | None) -> None:
        self._total, self._progress = total, progress
        self._done = 0
        self._next = time.monotonic() + _PROGRESS_INTERVAL
        self._lock = threading.Lock()

    def add(self, count: int) -> None:
        """Count finished values."""
        if self._progress is None:
            return
        with self._lock:
            self._done += count
            if time.monotonic() >= self._next and self._done < self._total:
                self._progress(Progress(self._done, self._total, "values"))
                self._next = time.monotonic() + _PROGRESS_INTERVAL

    def finish(self) -> None:
        """Report that all values are finished."""
        if self._progress is not None:
            self._progress(Progress(self._total, self._total, "values"))
