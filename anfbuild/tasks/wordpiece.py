"""BERT's tokenizer: a text to the numbers of its word pieces, from the vocabulary alone.

Words are cut at white space and punctuation, then from the left into the longest pieces that the vocabulary has (Wu et
al., Google's Neural Machine Translation System, 2016; Devlin et al., BERT, 2019).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from anfbuild.errors import StepError

PAD, UNKNOWN, FIRST, LAST = _MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
_INSIDE = "##"
"""Before a piece that does not begin a word."""
_LONGEST_WORD = 100
"""Characters; what is longer is unknown as a whole, as in BERT."""
_IDEOGRAPHS = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)
"""Code points that are words of their own."""


class WordPiece:
    """A vocabulary (piece by number) made ready. Where it has no capital letter, case and accents do not count."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(vocabulary)}
        missing = [mark for mark in _MARKS if mark not in self._numbers]
        if missing:
            raise StepError(
                f"the vocabulary of {len(vocabulary)} pieces lacks {', '.join(missing)}: it is no BERT's",
                where="source.vocabulary",
                remedy="Name the vocab.txt that the model was trained with under source.vocabulary.",
            )
        self._cased = any(piece != piece.lower() for piece in vocabulary if not piece.startswith("["))

    def encode(self, text: str) -> list[int]:
        """The numbers of the pieces of `text`, between those of [CLS] and [SEP]."""
        pieces = [self._numbers[piece] for word in self._words(text) for piece in self._pieces(word)]
        return [self._numbers[FIRST], *pieces, self._numbers[LAST]]

    @property
    def padding(self) -> int:
        """The number of what stands where there is no piece."""
        return self._numbers[PAD]

    def _words(self, text: str) -> Iterator[str]:
        text = unicodedata.normalize("NFC", text)
        if not self._cased:
            text = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
        spaced = "".join(f" {c} " if _stands_alone(c) else " " if c.isspace() else c for c in text if not _is_void(c))
        yield from spaced.split()

    def _pieces(self, word: str) -> list[str]:
        found: list[str] = []
        start = 0
        while start < len(word):
            mark = _INSIDE if start else ""
            ends = range(len(word), start, -1) if len(word) <= _LONGEST_WORD else ()
            end = next((end for end in ends if mark + word[start:end] in self._numbers), None)
            if end is None:
                return [UNKNOWN]
            found.append(mark + word[start:end])
            start = end
        return found


def _stands_alone(character: str) -> bool:
    """Punctuation, which for BERT is every ASCII character that is neither letter, digit nor space; ideographs."""
    if character.isascii():
        return character.isprintable() and not character.isalnum() and character != " "
    code = ord(character)
    return unicodedata.category(character).startswith("P") or any(low <= code <= high for low, high in _IDEOGRAPHS)


def _is_void(character: str) -> bool:
    """Whether the character says nothing: controls that are no white space, and the mark of what could not be read."""
    return character == "\ufffd" or (
        unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs", "Cn") and character not in "\t\n\r"
    )
