"""Geometry beyond boxes: masks as runs, polygons as rings, and raster files.

``masks`` and ``polygons`` read columns in any of the forms users have; ``rasters`` reads files;
``convert`` brings shapes of one kind to another.
"""
