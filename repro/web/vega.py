"""The library that draws charts in a browser, whole: Vega, Vega-Lite and Vega-Embed in one text out of a package."""

import functools

VEGA_LITE = "6.1"  # what altair 6 writes its charts for


@functools.cache
def bundle() -> str:
    """JavaScript of 0.9 MB that makes `vegaEmbed` a global name. 3 s of processor, once in a process."""
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)
