"""A release as it is published: one folder of files, all of which follow from the release and its publisher's words."""
