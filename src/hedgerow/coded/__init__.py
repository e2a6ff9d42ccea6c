"""The coded world that both sides speak of: domains, queries, measurements, recodings."""
