"""Statistics as pure functions of records; standard library only, no clock, file or randomness."""
