"""From a validation's records to its result. Pure: the same run gives the same verdict anywhere."""
