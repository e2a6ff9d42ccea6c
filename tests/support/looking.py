"""What a run asked and was told after its first look, which every run over raw columns takes."""


def asked(release):
    """The charges after the look."""
    charges = release.certificate.charges
    return charges[1:] if charges[0].purpose == "look" else charges


def answered(release):
    """The answers after the look."""
    return release.answers[len(release.certificate.charges) - len(asked(release)) :]
