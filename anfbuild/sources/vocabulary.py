"""The texts that a model's numbers stand for: the characters of a recogniser, the word pieces of a language model."""

from __future__ import annotations

import json
from pathlib import Path

import onnx

from anfbuild.errors import StepError

CHARACTERS = "character"
"""The key of a model's metadata under which PaddleOCR's recognisers have theirs, one a line."""

_WRITE = "Name a file with one text a line, or a JSON list of texts."

_WORD = "\u2581"
"""SentencePiece's mark of a piece that begins a word; WordPiece marks the others, by ##."""


def vocabulary(file: Path, model: onnx.ModelProto) -> list[str]:
    """The texts in `file`, else those in the metadata of `model`; where neither has any, none.

    `file` holds one a line, or a JSON list. Pieces in SentencePiece's notation become WordPiece's. Raises StepError
    for a file that is no text.
    """
    if file.exists():
        try:
            return _as_word_pieces(_parse(file.read_text("utf-8")))
        except (UnicodeDecodeError, RecursionError) as error:
            raise StepError(
                f"the vocabulary is no text in UTF-8: {error}", where="source.vocabulary", remedy=_WRITE
            ) from error
    return next((prop.value.split("\n") for prop in model.metadata_props if prop.key == CHARACTERS), [])


def _parse(text: str) -> list[str]:
    try:
        listed = json.loads(text)
    except ValueError:  # lines; the first of a vocabulary is often [PAD]
        return text.removesuffix("\n").replace("\r\n", "\n").split("\n")
    if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
        raise StepError("the vocabulary is JSON, but no list of texts", where="source.vocabulary", remedy=_WRITE)
    return listed


def _as_word_pieces(pieces: list[str]) -> list[str]:
    if not any(piece.startswith(_WORD) and piece != _WORD for piece in pieces):
        return pieces
    return [_as_word_piece(piece) for piece in pieces]


def _as_word_piece(piece: str) -> str:
    if piece.startswith(_WORD):
        return piece.removeprefix(_WORD)
    return piece if piece.startswith("[") and piece.endswith("]") and len(piece) > 2 else f"##{piece}"
