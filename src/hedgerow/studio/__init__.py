"""The guided page for stewards: `hedgerow studio people.csv` leads from a file to a published folder in a browser.

A step is a command. Whatever reads rows, spends or publishes is the command that the page shows, run in a process of
its own; this process reads headers, schemas, ledgers and releases, and serves pages. So it holds no row, and has no
logic of its own about privacy.
"""
