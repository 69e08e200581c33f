"""Read text files strictly: delimited cells (CSV, TSV) or one value per line, in pieces of bounded size.

pyarrow parses large blocks of delimited text if it is installed. It accepts some text that is not well-formed, so a
block goes to pyarrow only if its quotation marks are regular. Python's ``csv`` module reads the other blocks and all
small files, and it decides about every error. Values and errors are therefore the same with pyarrow and without it.
"""

from __future__ import annotations

import codecs
import csv
import dataclasses
import gzip
import io
import itertools
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import numpy as np

from sfumato._core.optional import import_pyarrow
from sfumato._core.text import quantity
from sfumato.errors import Description, InvalidInput, MissingExtra

__all__ = ["ENCODINGS", "DelimitedText", "TextFormat", "TextPiece", "is_compressed", "text_lines"]

#: Accepted encodings of text files.
ENCODINGS = ("utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16")
#: Other delimiters, for which a header without the expected one is searched.
_COMMON_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a vertical bar"}
#: First bytes of compressed text, and of files that are not text.
_GZIP = b"\x1f\x8b"
_OTHER_BEGINNINGS = {
    b"PK\x03\x04": ("a ZIP archive or an Excel workbook", "Extract the file, or save the sheet as CSV."),
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ("an Excel workbook", "Save the sheet as CSV."),
    b"PAR1\x15": ("a Parquet file", "Rename the file so that it ends in .parquet."),
    b"ARROW1\0\0": ("an Arrow file", "Rename the file so that it ends in .arrow."),
    b"BZh91AY&SY": ("a bzip2 file", "Decompress the file, or compress it with gzip."),
    b"\xfd7zXZ\0": ("an xz file", "Decompress the file, or compress it with gzip."),
    b"\x28\xb5\x2f\xfd": ("a Zstandard file", "Decompress the file, or compress it with gzip."),
}
_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

#: Bytes per block of delimited text, and per block of lines, which are read as they arrive.
_BLOCK_BYTES, _LINE_BLOCK_BYTES = 2**22, 2**16
#: Files of at most this size are read without pyarrow, because importing it takes longer.
_SMALL_BYTES = 2**18
#: Rows per piece that Python parses.
_ROWS = 2**16
#: Maximum length of a line in characters, and of a cell, which is the limit of Python's ``csv`` module.
_LONGEST_LINE, _LONGEST_CELL = 2**20, 131_072
_QUOTE, _LF, _CR = ord('"'), ord("\n"), ord("\r")


@dataclass(frozen=True)
class TextFormat:
    """How a text file spells its cells.

    Parameters
    ----------
    delimiter
        Character between cells. None is a comma, or a tab if the name of the file ends in ``.tsv`` or ``.tab``.
    encoding
        One of :data:`ENCODINGS`. A byte order mark is skipped.
    decimal
        Decimal mark of numbers, ``"."`` or ``","``.
    nulls
        Cells that count as empty, such as ``NA``.
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    nulls: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        mark: Any = self.delimiter  # a document may contain any type
        is_one = isinstance(mark, str) and len(mark) == 1 and mark.isascii()
        if mark is not None and (not is_one or mark.isalnum() or mark in '"\n\r\0.'):
            must = "be one ASCII character that is not a letter, a digit, a dot, a quotation mark or a line end"
            raise InvalidInput("the text format", "delimiter", must, mark)
        charset = self.encoding
        if charset not in ENCODINGS:
            raise InvalidInput("the text format", "encoding", f"be one of {', '.join(ENCODINGS)}", charset)
        if self.decimal not in (".", ","):
            raise InvalidInput("the text format", "decimal", "be '.' or ','", self.decimal)

    def of_file(self, name: str) -> TextFormat:
        """Return the format with the delimiter of the file with a name, such as ``values.tsv.gz``."""
        if self.delimiter is not None:
            return self
        is_tabbed = name.lower().removesuffix(".gz").endswith((".tsv", ".tab"))
        return dataclasses.replace(self, delimiter="\t" if is_tabbed else ",")


@dataclass(frozen=True)
class TextPiece:
    """Consecutive rows of a text file."""

    #: The cells of each requested column: a list of strings, or an Arrow array of strings.
    columns: list[Any]
    rows: int
    #: Function that returns the line of a row, counted from 1 as an editor does.
    line_of: Callable[[int], int]


class DelimitedText:
    """A text file of cells under a header line.

    Parameters
    ----------
    file
        The bytes of the file, compressed with gzip or not.
    shown
        Name of the file, which messages show.
    form
        How the file spells its cells.
    """

    def __init__(self, file: BinaryIO, shown: str, form: TextFormat) -> None:
        delimiter = form.of_file(shown).delimiter
        assert delimiter is not None
        self.shown, self._delimiter = shown, delimiter
        self._source = _Utf8(file, shown, form.encoding)
        self._pending = self._source.block(_BLOCK_BYTES)
        self._line = 0  # lines before the pending bytes
        self.header = self._read_header()

    def _read_header(self) -> list[str]:
        """Read the first record, and remove it from the pending bytes."""
        if not self._pending:
            raise InvalidInput(self.shown, "the file", "have a header line", Description("an empty file"))
        # The first bytes may end within a character, but a header is shorter.
        beginning = io.StringIO(self._pending[: 2 * _LONGEST_LINE].decode(errors="ignore"), newline="")
        reader = csv.reader(iter(beginning.readline, ""), delimiter=self._delimiter, strict=True)
        try:
            header = next(reader)
        except csv.Error as error:
            raise self._malformed(1, error) from error
        if not header:
            raise InvalidInput(self.shown, "line 1", "be the header", Description("an empty line"))
        self._pending = self._pending[len(beginning.getvalue()[: beginning.tell()].encode()) :]
        self._line = reader.line_num
        return header

    def delimiter_hint(self) -> str | None:
        """Return a hint if the header is one cell that contains another delimiter."""
        if len(self.header) > 1:
            return None
        others = [mark for mark in _COMMON_DELIMITERS if mark != self._delimiter and mark in self.header[0]]
        if not others:
            return None
        mark = max(others, key=self.header[0].count)
        return f"The header contains {_COMMON_DELIMITERS[mark]}: set the delimiter to {mark!r} if it separates cells."

    def pieces(self, places: Sequence[int], plain: Collection[int] = ()) -> Iterator[TextPiece]:
        """Yield the cells of the columns at these positions, in pieces.

        Arrow arrays are in dictionary encoding, except at the ``plain`` positions, whose cells are mostly distinct.
        """
        parse = None
        while True:
            block = self._source.block(_BLOCK_BYTES)
            data, self._pending = self._pending + block, b""
            if not data:
                return
            if parse is None and (len(data) <= _SMALL_BYTES or (parse := _arrow_parser()) is None):
                yield from self._parse_with_python(data, places)
                return
            end = _last_record_end(data) if block else len(data)
            record_data = data if end == len(data) else data[:end]
            quotes = _quotes(record_data)
            columns = None
            assert parse is not None
            if end and self._is_regular(record_data, quotes):
                columns = parse(record_data, len(self.header), places, plain, self._delimiter, quotes is not None)
            if columns is None:
                yield from self._parse_with_python(data, places)
                return
            before = self._line
            self._line += _line_count(record_data)
            self._pending = data[end:]
            yield TextPiece(columns, len(columns[0]), self._line_finder(record_data, before, quotes is not None))

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line and all cells of each row; empty lines are skipped."""
        for line, cells in self._records(self._pending):
            if cells and len(cells) != len(self.header):
                raise self._ragged(line, len(cells))
            if cells:
                yield line, cells

    def _records(self, beginning: bytes) -> Iterator[tuple[int, list[str]]]:
        """Yield the line and the cells of each row from here to the end of the file, as Python parses them."""
        self._source.unread(beginning)
        before = self._line
        lines = _bounded_lines(self._source.text(""), self.shown, before)
        reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
        line = before + 1
        try:
            for cells in reader:
                yield line, cells
                line = before + reader.line_num + 1
        except csv.Error as error:
            raise self._malformed(line, error) from error

    def _is_regular(self, data: bytes, quotes: Any) -> bool:
        """Return whether pyarrow and ``csv`` read the same cells, if pyarrow accepts the data.

        pyarrow reads an empty line as a row, and accepts longer cells.
        """
        if _has_empty_line(data, quotes):
            return False
        start = 0
        while len(data) - start > _LONGEST_CELL:
            end = data.rfind(b"\n", start, start + _LONGEST_CELL)
            if end < 0:
                return False
            start = end + 1
        return quotes is None or _quotes_are_regular(data, quotes, ord(self._delimiter))

    def _line_finder(self, data: bytes, before: int, quoted: bool) -> Callable[[int], int]:
        """Return a function that returns the line of a row of a block."""

        def line_of(row: int) -> int:
            if not quoted:
                return before + row + 1
            reader = csv.reader(io.StringIO(data.decode(), newline=""), delimiter=self._delimiter, strict=True)
            for _ in itertools.islice(reader, row):
                pass
            return before + reader.line_num + 1

        return line_of

    def _parse_with_python(self, beginning: bytes, places: Sequence[int]) -> Iterator[TextPiece]:
        """Yield the rows from here to the end of the file."""
        width = len(self.header)
        records = self._records(beginning)
        while piece := list(itertools.islice(records, _ROWS)):
            for line, cells in piece:
                if len(cells) != width:
                    raise self._ragged(line, len(cells))
            columns = [[cells[place] for _, cells in piece] for place in places]
            yield TextPiece(columns, len(piece), [line for line, _ in piece].__getitem__)

    def _ragged(self, line: int, cells: int) -> InvalidInput:
        """Return the error for a row of another width; it does not show the cells, which may be personal."""
        must = f"have {quantity(len(self.header), 'cell')}, one per column of the header"
        if cells == 0:
            got, hint = "an empty line", "Delete the line if it does not belong to a person."
            return InvalidInput(self.shown, f"line {line}", must, Description(got), hint=hint)
        return InvalidInput(self.shown, f"line {line}", must, Description(quantity(cells, "cell")))

    def _malformed(self, line: int, error: csv.Error) -> InvalidInput:
        """Return the error for a record that is not well-formed."""
        got = Description(f"a record that the parser rejects ({error})")
        hint = "Close each quotation mark that opens a cell, and double those within it."
        return InvalidInput(self.shown, f"line {line}", "be well-formed delimited text", got, hint=hint)


def text_lines(file: BinaryIO, shown: str, form: TextFormat) -> Iterator[str]:
    """Yield the lines of a text file without their line ends."""
    source = _Utf8(file, shown, form.encoding)
    for line in _bounded_lines(source.text("\n"), shown, 0):
        yield line.removesuffix("\n").removesuffix("\r")


def is_compressed(file: BinaryIO) -> bool:
    """Return whether a buffered file begins like a gzip file."""
    return _beginning(file).startswith(_GZIP)


def _beginning(file: BinaryIO) -> bytes:
    """Return the first bytes of a buffered file without consuming them."""
    return cast("io.BufferedReader", file).peek(16)[:16]


def _bounded_lines(file: io.TextIOWrapper, shown: str, before: int) -> Iterator[str]:
    """Yield lines with their line ends, and reject long ones."""
    for number in itertools.count(before + 1):
        line = file.readline(_LONGEST_LINE + 1)
        if not line:
            return
        if len(line) > _LONGEST_LINE:
            must = f"be at most {_LONGEST_LINE} characters long"
            raise InvalidInput(shown, f"line {number}", must, Description("a longer line"))
        yield line


# -- bytes -------------------------------------------------------------------------------------------------


class _Utf8(io.RawIOBase):
    """The text of a file in UTF-8, without its byte order mark; errors name the line."""

    def __init__(self, file: BinaryIO, shown: str, encoding: str) -> None:
        self._shown = shown
        self._encoding = "utf-8-sig" if encoding == "utf-8" else encoding
        self._decoder = codecs.getincrementaldecoder(self._encoding)()
        self._passes = self._encoding == "utf-8-sig"
        self._line = 1  # line of the next byte
        self._at_start, self._rest = True, b""
        self._file: BinaryIO = cast("BinaryIO", gzip.GzipFile(fileobj=file)) if is_compressed(file) else file

    def block(self, size: int) -> bytes:
        """Return about ``size`` bytes; an empty block is the end of the file."""
        while True:
            with self._reading():
                data = self._file.read(size)
            if self._at_start:
                self._check_beginning(data)
            block = self._converted(data)
            self._at_start = False
            if block or not data:
                return block

    def _check_beginning(self, data: bytes) -> None:
        """Reject files that are not text."""
        for beginning, (name, hint) in _OTHER_BEGINNINGS.items():
            if data.startswith(beginning):
                raise InvalidInput(self._shown, "the file", "be a text file", Description(name), hint=hint)
        if data.startswith(_UTF_16_MARKS) and self._encoding != "utf-16":
            must, hint = f"have the encoding {self._encoding.removesuffix('-sig')}", "Set the encoding to utf-16."
            raise InvalidInput(self._shown, "the file", must, Description("UTF-16 text"), hint=hint)
        if self._encoding == "utf-16" and data and not data.startswith(_UTF_16_MARKS):
            hint = "Set the encoding of the file, such as utf-8."
            got = Description("text without one")
            raise InvalidInput(self._shown, "the file", "begin with the byte order mark of UTF-16", got, hint=hint)

    def _converted(self, data: bytes) -> bytes:
        """Return bytes in UTF-8, and check them."""
        try:
            if self._passes and not self._at_start and data.isascii() and not self._decoder.getstate()[0]:
                block = data
            else:
                text = self._decoder.decode(data, final=not data)
                # Bytes of an incomplete character at the end stay in the decoder.
                block = text.encode()
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(error.encoding, errors="ignore")
            wanted = self._encoding.removesuffix("-sig")
            hint = "Set the encoding of the file, such as latin-1, cp1252 or utf-16, or save it as UTF-8."
            got = Description(f"other bytes ({error.reason})")
            where = f"line {self._line + before.count(chr(10))}"
            raise InvalidInput(self._shown, where, f"be text in the encoding {wanted}", got, hint=hint) from error
        if b"\0" in block:
            line = self._line + _line_count(block[: block.index(b"\0")])
            hint = "Check that the file is text, and set its encoding."
            raise InvalidInput(self._shown, f"line {line}", "be text", Description("a NUL byte"), hint=hint)
        self._line += _line_count(block)
        return block

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Convert the errors of damaged compressed files."""
        try:
            yield
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            hint = "Write or copy the file again."
            must = "be a complete gzip file"
            raise InvalidInput(self._shown, "the file", must, Description(error), hint=hint) from error

    def text(self, newline: str) -> io.TextIOWrapper:
        """Return the rest as a text file."""
        return io.TextIOWrapper(io.BufferedReader(self, _LINE_BLOCK_BYTES), encoding="utf-8", newline=newline)

    def unread(self, data: bytes) -> None:
        """Return bytes of blocks, which are read again."""
        self._rest = data

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = self.block(_LINE_BLOCK_BYTES)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _line_count(data: bytes) -> int:
    """Return the number of line ends: LF, CRLF or CR."""
    # NumPy counts frequent bytes much faster than bytes.count.
    count = int(np.count_nonzero(np.frombuffer(data, np.uint8) == _LF))
    return count + data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else count


def _last_record_end(data: bytes) -> int:
    """Return the position after the last record that is complete if quotation marks are regular, or 0."""
    mark = b"\n" if b"\n" in data else b"\r"
    end = data.rfind(mark, 0, len(data) - (mark == b"\r")) + 1  # LF may follow a CR at the end
    open_quotes = data.count(b'"', 0, end) % 2
    while end and open_quotes:
        previous = data.rfind(mark, 0, end - 1) + 1
        open_quotes = (open_quotes + data.count(b'"', previous, end)) % 2
        end = previous
    return end


def _has_empty_line(data: bytes, quotes: Any) -> bool:
    """Return whether a line outside quotation marks is empty."""
    if data[:1] in (b"\n", b"\r"):
        return True
    content = np.frombuffer(data, np.uint8)
    is_end = content == _LF
    if b"\r" not in data:
        follows = is_end[1:] & is_end[:-1]
    else:
        is_return = content == _CR
        follows = (is_end | is_return)[1:] & (is_end | is_return)[:-1]
        follows &= ~(is_return[:-1] & is_end[1:])  # CRLF is one line end
    if quotes is None or not follows.any():
        return bool(follows.any())
    return bool((np.searchsorted(quotes, np.flatnonzero(follows)) % 2 == 0).any())


def _quotes(data: bytes) -> Any:
    """Return the positions of the quotation marks, or None if there are none."""
    return np.flatnonzero(np.frombuffer(data, np.uint8) == _QUOTE) if b'"' in data else None


def _quotes_are_regular(data: bytes, quotes: Any, delimiter: int) -> bool:
    """Return whether each quotation mark opens or closes a whole cell, or is doubled within one."""
    if len(quotes) % 2:
        return False
    content = np.frombuffer(data, np.uint8)
    opening, closing = quotes[::2], quotes[1::2]
    before = content.take(opening - 1, mode="wrap")
    after = content.take(closing + 1, mode="clip")
    if len(quotes) and opening[0] == 0:
        before[0] = _LF
    if len(quotes) and closing[-1] + 1 == len(content):
        after[-1] = _LF
    neighbour = np.zeros(256, dtype=bool)
    neighbour[[delimiter, _LF, _CR, _QUOTE]] = True
    if not (neighbour.take(before).all() and neighbour.take(after).all()):
        return False
    doubled, ended = before == _QUOTE, after == _QUOTE
    starts = opening[~doubled] if doubled.any() else opening
    ends = closing[~ended] if ended.any() else closing
    return len(starts) == len(ends) and bool((ends - starts <= _LONGEST_CELL).all())


# -- pyarrow -----------------------------------------------------------------------------------------------


def _arrow_parser() -> Callable[..., list[Any] | None] | None:
    """Return a function that parses a block with pyarrow, or None if it is not installed."""
    try:
        pyarrow = import_pyarrow()
        arrow_csv = import_pyarrow(module="pyarrow.csv")
    except MissingExtra:
        return None

    def parse(
        data: bytes, width: int, places: Sequence[int], plain: Collection[int], delimiter: str, quoted: bool
    ) -> list[Any] | None:
        """Return columns of strings, or None if pyarrow rejects the block."""
        chosen = list(map(str, places))
        # Threads of pyarrow may release the block when the interpreter no longer runs, so Python must not own it.
        block = pyarrow.allocate_buffer(len(data))
        np.frombuffer(block, np.uint8)[:] = np.frombuffer(data, np.uint8)
        string = pyarrow.string()
        coded = pyarrow.dictionary(pyarrow.int32(), string)
        try:
            table = arrow_csv.read_csv(
                pyarrow.BufferReader(block),
                read_options=arrow_csv.ReadOptions(column_names=list(map(str, range(width)))),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=delimiter, newlines_in_values=quoted, ignore_empty_lines=False
                ),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=list(dict.fromkeys(chosen)),
                    column_types={str(place): string if place in plain else coded for place in places},
                    check_utf8=False,  # the bytes are checked already
                    strings_can_be_null=False,
                ),
            )
        except pyarrow.ArrowException:
            return None
        return [table.column(name) for name in chosen]

    return parse
