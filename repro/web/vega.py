"""The library that draws charts in a browser, whole: Vega, Vega-Lite and Vega-Embed in one text out of a package."""

import functools


@functools.cache
def bundle() -> str:
    """JavaScript of 0.9 MB that makes `vegaEmbed` a global name. 3 s of processor, once in a process."""
    import altair
    import vl_convert

    version = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])  # what altair writes its charts for
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)
