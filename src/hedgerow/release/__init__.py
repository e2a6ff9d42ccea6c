"""What is published: the bundle, its certificate, its rows."""
