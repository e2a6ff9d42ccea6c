"""Questions in SQL, answered from a release: an estimate, an interval, and what it rests on. No rows are needed."""
