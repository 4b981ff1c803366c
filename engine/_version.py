"""Version, in a separate file so that the build can read it without imports."""

__version__ = "0.1.0"
