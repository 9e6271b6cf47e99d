"""The files of sessions at points in time: where they are kept, and how one goes back."""
