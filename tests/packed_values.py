"""What a report has packed in an element, as a test reads it without a browser's help."""

import base64
import gzip
import json
from typing import Any


def unpacked(text: str) -> Any:
    """The value of a text of base64, gzip and JSON. Raises ValueError where it is none."""
    return json.loads(gzip.decompress(base64.b64decode(text, validate=True)))


def packed_at(page: Any, id: str) -> Any:
    """The value that stands packed in the element `id` of a page in a browser."""
    return unpacked(page.locator(f"#{id}").text_content())
