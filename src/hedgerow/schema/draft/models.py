"""A Pydantic model, written module:Model."""

from __future__ import annotations

import importlib
import sys

from hedgerow.errors import OptionError
from hedgerow.schema.draft.declaration import Findings
from hedgerow.schema.draft.descriptors import read_json_schema


def read_model(source: str) -> Findings:
    """What the model's fields allow. The module is imported, so it runs."""
    module_name, _, class_name = source.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        model = getattr(importlib.import_module(module_name), class_name)
        described = model.model_json_schema()
    except ImportError:
        raise OptionError("cannot-import", f'the module "{module_name}" of "{source}" cannot be imported.') from None
    except AttributeError:
        raise OptionError("not-a-pydantic-model", f'"{source}" is not a Pydantic model.') from None
    return read_json_schema({"properties": {}, **described})
