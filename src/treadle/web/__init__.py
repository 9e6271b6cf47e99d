"""The web page: a surface like the others. It sees the protocol and the app, and is loaded by `treadle web` only."""
