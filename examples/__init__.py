"""Small made-up data sets, one a folder; `demos.toml` says what `evalengine demo` scores.

All of them together are about 190 kB of the wheel. `making/` has the script that made each.
"""
