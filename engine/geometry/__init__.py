"""Geometry beyond boxes: masks as runs, polygons as rings, raster files, conversions.

``masks`` and ``polygons`` parse columns in all accepted forms; ``rasters`` reads files.
"""
