"""`penstock demo`: an overloaded stream on this machine, without shedding and with it."""
