"""Where rows come from: files, frames and streams. Private side."""
