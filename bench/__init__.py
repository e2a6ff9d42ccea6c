"""Speed and quality, side by side with peers and with other versions. `python -m bench`; tables from `bench.tables`."""
