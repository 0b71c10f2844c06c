"""Image files as (height, width, 3) RGB, whatever they hold; what cannot be shown faithfully is refused by name."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from anfbuild.errors import StepError

EXTENSIONS = frozenset((".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".gif", ".ppm", ".pgm"))

_SIXTEEN_BIT = ("I", "I;16", "I;16L", "I;16B", "I;16N")


def load_image(path: Path) -> NDArray[np.uint8]:
    """The image in `path`, turned upright by its EXIF orientation, over white where it is transparent.

    Grey, palette, CMYK and the like are converted; 16-bit grey is scaled to 8 bits. Raises StepError naming the file:
    missing, no image, truncated, several frames, floating-point pixels, too large to be a photo.
    """
    try:
        return decode_image(path.read_bytes(), path)
    except OSError as error:
        raise StepError(f"{path} cannot be read: {error.strerror or error}") from error


def decode_image(content: bytes, path: Path) -> NDArray[np.uint8]:
    """`load_image` of a file's content; `path` only names it in errors."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content)) as image:
                # Phones append a depth map or a second view to a JPEG (MPO); the first frame is the photo.
                if getattr(image, "n_frames", 1) > 1 and image.format != "MPO":
                    raise StepError(f"{path} holds several frames", remedy="Save the frame that is meant on its own.")
                image.load()
                ImageOps.exif_transpose(image, in_place=True)  # else it copies what is upright already
                rgb = _rgb(image, path)
    except UnidentifiedImageError:
        raise StepError(f"{path} is not an image that can be read") from None
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise StepError(f"{path} is too large: {error}", remedy="Scale it down.") from error
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise StepError(f"{path} is damaged: {error}") from error
    return np.asarray(rgb, np.uint8)


def _rgb(image: Image.Image, path: Path) -> Image.Image:
    if image.mode in _SIXTEEN_BIT:
        return Image.fromarray(_eight_bit(np.asarray(image), path)).convert("RGB")
    if image.mode == "F":
        raise StepError(f"{path} has floating-point pixels", remedy="Save it with 8 or 16 bits a channel.")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, image).convert("RGB")
    return image if image.mode == "RGB" else image.convert("RGB")


def _eight_bit(values: NDArray[np.generic], path: Path) -> NDArray[np.uint8]:
    wide = values.astype(np.int64)
    if wide.min() < 0 or wide.max() > 65535:
        raise StepError(f"{path} has 32-bit pixels", remedy="Save it with 8 or 16 bits a channel.")
    grey: NDArray[np.uint8] = ((wide + 128) // 257).astype(np.uint8)
    return grey
