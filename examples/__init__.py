"""Small synthetic data sets, one per folder; `demos.toml` has the arguments of `evalengine demo`.

Together they take about 190 kB of the wheel. `making/` has the script that made each.
"""
